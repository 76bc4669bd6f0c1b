-- pawl: table; grant select, insert, update, delete
-- Version 2: concurrency limits. A limit has a rate (allowed, period, burst), or `concurrent`, or
-- both.
alter table limits
  alter column allowed drop not null,
  alter column period drop not null,
  alter column burst drop not null,
  add column concurrent smallint check (concurrent > 0);    -- how many runs execute at once, per key

-- invariant: one holder per slot of a concurrency limit, so never more than `concurrent` of a key
create unique index runs_slots on runs (concurrency, slot) where concurrency is not null and locked_by is not null;
-- admit: the line for a slot, by definition. `slot` is 0 from the claim that found the limit full
-- until the run gets a slot; a run with hold 32 waits, the others are let in and claimable.
create index runs_slot_line on runs (concurrency, queue, name, version, priority, eligible_at, id)
  where slot = 0 and case when status in ('runnable', 'awaiting_signal') then (hold & -33) = 0 else false end;

-- Keys of concurrency limits that have a free slot, and whose first run could not be let in because
-- another transaction had the key or that run locked. repair_slots lets them in. A key may appear
-- twice.
create table slots_to_repair (
  id          bigint generated always as identity primary key,
  concurrency text collate "C" not null
);
