-- pawl: table; grant select, insert, update, delete
-- Version 2: operating runs, and options that few runs have. Every index and column of runs costs
-- every statement on it, so most of this is beside runs. A run without any of it has no row here.
alter table runs
  add column has_extras       boolean,                   -- it may have rows in extras or tags
  add column concurrency      text collate "C";          -- limit or limit:key

-- Rare facts of a run. Only transactions that have the run locked, or insert it, write its row.
create table extras (
  run_id           bigint            primary key,
  name             text collate "C"  not null,           -- of its definition
  ended            boolean           not null default false,
  origin_id        bigint,                               -- the first run of a chain of reruns
  rerun_of         bigint,                               -- the run that this one repeats
  timeout          interval,                             -- how long it may take from when it may begin
  deadline_at      timestamptz,                          -- past it a live run fails
  debounce_until   timestamptz,                          -- the latest time that a debounce may move to
  debounce_key     text collate "C",                     -- until its first claim, or its end
  correlation_key  text collate "C",
  paused           jsonb                                 -- {by, reason, since} while bit 16 of hold is set
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
  autovacuum_vacuum_cost_delay = 0
);

-- fail_overdue: live runs by their deadline
create index extras_deadline on extras (deadline_at) where deadline_at is not null and not ended;
-- invariant: one run per name and debounce key that has not begun
create unique index extras_debounce on extras (debounce_key, name) where debounce_key is not null;
-- deliver_correlated, find: the runs of a correlation key, live ones apart
create index extras_correlated on extras (correlation_key, ended, run_id) where correlation_key is not null;
-- get: the newest rerun of a run
create index extras_reruns on extras (rerun_of, run_id) where rerun_of is not null;
-- list and gauges: the paused runs
create index extras_paused on extras (run_id) where paused is not null;

-- The labels of runs.
create table tags (
  run_id  bigint            not null,
  name    text collate "C"  not null,
  value   text collate "C"  not null,
  primary key (run_id, name)
);

-- list by tag, newest first
create index tags_listing on tags (name, value, run_id desc);

alter table definitions add column timeout interval;      -- the default of deadlines

-- A run that fails by its deadline while it is executed keeps its holder until the worker releases
-- it, as a cancelled one does. Not validated: the old rule is stricter, so that every row passes.
alter table runs drop constraint runs_holder;
alter table runs add constraint runs_holder check (locked_by is null or status in ('executing', 'cancelled', 'failed')) not valid;
