-- pawl: table; grant select, insert, update, delete
-- The tokens of a rate limit, one bucket per key. A run that finds no token is put off behind the
-- runs that were put off before it. promised_at is the due time of the last of them.
create table buckets (
  name        text collate "C"     not null,
  key         text collate "C"     not null default '',
  tokens      double precision not null,
  updated_at  timestamptz not null,
  promised_at timestamptz not null,
  changes     int not null default 0,                    -- limits.changes when it promised
  primary key (name, key)
) with (fillfactor = 50);
