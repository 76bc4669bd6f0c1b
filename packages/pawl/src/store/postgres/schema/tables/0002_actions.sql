-- pawl: table; grant select, insert, delete
-- The action log: who has done what to runs, limits and the database. Kept for 90 days.
create table actions (
  id         bigint      generated always as identity primary key,
  at         timestamptz not null,
  who        text        not null,                       -- the name of the token, or 'local'
  source     text        not null,                       -- an address, 'cli' or 'library'
  action     text        not null,                       -- such as 'runs.rerun'
  target     text collate "C",                           -- the id or name of the thing
  detail     jsonb
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- actions of one thing, newest first
create index actions_target on actions (target, id) where target is not null;
