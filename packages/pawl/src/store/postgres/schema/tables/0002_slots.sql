-- pawl: table; grant select, insert, update, delete
-- Version 2: concurrency limits. A limit has a rate (allowed, period, burst), or `concurrent`, or
-- both.
alter table limits
  alter column allowed drop not null,
  alter column period drop not null,
  alter column burst drop not null,
  add column concurrent smallint check (concurrent > 0);    -- how many runs execute at once, per key

-- The runs that hold a slot of their concurrency limit, from claim to the end of the claim, and those
-- in line for one, from the claim that found the limit full on. A run in line with hold 32 waits, the
-- others are let in and claimable. Only transactions that have the run locked write its row.
create table slots (
  run_id       bigint            primary key,
  concurrency  text collate "C"  not null,
  slot         smallint          not null,               -- 0: in line
  queue        text collate "C"  not null,               -- its place in line
  name         text collate "C"  not null,
  version      int               not null,
  priority     smallint          not null,
  eligible_at  timestamptz       not null
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
  autovacuum_vacuum_cost_delay = 0
);
-- invariant: one holder per slot, so never more than `concurrent` of a key
create unique index slots_held on slots (concurrency, slot) where slot > 0;
-- admit: the line for a slot, by definition
create index slots_line on slots (concurrency, queue, name, version, priority, eligible_at, run_id) where slot = 0;

-- Keys of concurrency limits that have a free slot, and whose first run could not be let in because
-- another transaction had the key or that run locked. repair_slots lets them in. A key may appear
-- twice.
create table slots_to_repair (
  id          bigint generated always as identity primary key,
  concurrency text collate "C" not null
);
