-- pawl: table; grant select, insert, update, delete
-- A publication that had a dedup key, kept for a day: publishing it again does nothing and answers
-- the same numbers.
create table publications (
  topic      text collate "C" not null,
  dedup_key  text collate "C" not null,
  runs       int         not null,
  messages   int         not null,
  deliveries int         not null,
  expires_at timestamptz not null,
  primary key (topic, dedup_key)
);

-- publications whose day is over
create index publications_expiry on publications (expires_at);
