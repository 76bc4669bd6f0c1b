-- pawl: table; grant select, insert, update, delete
-- Version 2: starts and ends of runs over time, for charts. roll_up keeps them; read_series answers.
-- A row counts one minute (kept for a day) or one hour (kept for 31 days). Empty texts mean all: every
-- run counts to its name and queue, to its name, to its queue, and to the row of all runs.
create table series (
  grain      text collate "C" not null check (grain in ('minute', 'hour')),
  name       text collate "C" not null,
  queue      text collate "C" not null,
  at         timestamptz not null,                       -- where the minute or hour begins
  started    int         not null default 0,
  completed  int         not null default 0,
  failed     int         not null default 0,
  cancelled  int         not null default 0,
  latency    int[],                                      -- ends by time since the start (latency_bounds)
  backlog    int,                                        -- the most due runs seen; null: not sampled
  primary key (grain, name, queue, at)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
-- roll_up deletes old rows; tokens with prefixes read the names of a time
create index series_at on series (grain, at);

-- Failures by hour, kept for 31 days. A group has one definition, error code and step ('': none).
create table failures (
  at          timestamptz not null,                      -- where the hour begins
  name        text collate "C" not null,
  code        text collate "C" not null,
  step        text collate "C" not null,
  failed      int         not null,
  first_at    timestamptz not null,
  last_at     timestamptz not null,
  last_run_id bigint      not null,
  message     text,                                      -- of the last one
  primary key (at, name, code, step)
);

-- Ended runs by retention and the end of it: sweep finds those past it. Within one retention that is
-- also the order of their ends, so that readers of recent ends need no index of their own, which
-- every end of a run would have to write.
drop index runs_expiry;
create index runs_expiry on runs (retention, expires_at) where expires_at is not null;

-- How far roll_up has counted: the one row. Its lock guards all writes to series and failures.
create table series_cursor (
  only_row   boolean     primary key default true check (only_row),
  started_id bigint      not null default 0,             -- starts of runs up to this id are counted
  ended_at   timestamptz not null default '-infinity',   -- and ends up to this time
  counted_at timestamptz not null default '-infinity',   -- when roll_up last counted
  sampled_at timestamptz not null default '-infinity',   -- and last sampled the backlog
  is_behind  boolean     not null default true           -- its last batch was full
);
insert into series_cursor default values;

-- what the code of a definition declares: {initial, steps, transitions, signals}
alter table definitions add column declared jsonb;
