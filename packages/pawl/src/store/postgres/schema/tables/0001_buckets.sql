-- pawl: table; grant select, insert, update, delete
-- The tokens of a limit, one bucket per key. Runs that found none are put off one behind the other, the last of them
-- to promised_at: who comes later queues behind it.
create table buckets (
  name        text collate "C"     not null,
  key         text collate "C"     not null default '',
  tokens      double precision not null,
  updated_at  timestamptz not null,
  promised_at timestamptz not null,
  changes     int not null default 0,                    -- those of its limit when it promised that
  primary key (name, key)
) with (fillfactor = 50);
