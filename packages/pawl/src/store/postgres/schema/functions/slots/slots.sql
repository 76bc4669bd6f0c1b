-- pawl: inner
-- Pieces that the functions for concurrency limits share. A key of a limit is written `limit` or
-- `limit:key`, as in runs.concurrency. A run holds a slot as long as a worker holds the run.

-- The number of the advisory lock of a limit's key. A transaction that gives or frees a slot holds
-- it until its end.
create or replace function slot_lock(p_key text) returns bigint language sql immutable as $$
  select key_lock(chr(2) || p_key)
$$;

-- Notes keys for the repair, which looks at them within a second.
create or replace function note_slots_to_repair(p_key text[]) returns void language plpgsql as $f$
begin
  insert into slots_to_repair (concurrency) select k.key from unnest(p_key) k(key);
end $f$;

-- How many runs of this key may execute at once. A limit without `concurrent` bounds nothing; then
-- the numbers of slots do.
create or replace function slots_of(p_key text) returns int language plpgsql stable as $f$
begin
  return coalesce((select l.concurrent from limits l where l.name = split_part(p_key, ':', 1)), 32767);
end $f$;

-- How many slots of a key are free. After a limit was lowered, more may be held than there are. Rides
-- runs_slots.
create or replace function free_slot_count(p_key text) returns int language plpgsql stable as $f$
begin
  return greatest(slots_of(p_key) - (select count(*) from runs r where r.concurrency = p_key and r.locked_by is not null)::int, 0);
end $f$;

-- The lowest free slots of a key, at most p_most. Rides runs_slots.
create or replace function free_slots_of(p_key text, p_most int) returns smallint[] language plpgsql stable as $f$
declare
  v_held smallint[] := array(select r.slot from runs r where r.concurrency = p_key and r.locked_by is not null);
  v_free int := least(slots_of(p_key) - cardinality(v_held), p_most);
begin
  if v_free <= 0 then
    return '{}';
  end if;
  return array(select n::smallint from generate_series(1, cardinality(v_held) + v_free) n where n <> all (v_held) limit v_free);
end $f$;

-- The first p_most runs in line for a slot, of each definition in each queue: the lines of a key. Each
-- line is in the order (priority, eligible_at, id). Which line gets the next slot is decided by the
-- workers: the first to claim takes it. So runs that no worker serves, or whose workers are busy,
-- keep no others waiting. Rides runs_slot_line: a skip scan over the definitions.
create or replace function first_in_lines(p_key text, p_most int) returns table (id bigint, hold smallint)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    with recursive line(queue, name, version) as (
        (select r.queue, r.name, r.version from runs r where r.concurrency = p_key
          and r.slot = 0 and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & -33) = 0 else false end
          order by r.queue, r.name, r.version limit 1)
      union all
        select n.queue, n.name, n.version from line l cross join lateral (
          select r.queue, r.name, r.version from runs r where r.concurrency = p_key
            and r.slot = 0 and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & -33) = 0 else false end
            and (r.queue, r.name, r.version) > (l.queue, l.name, l.version)
          order by r.queue, r.name, r.version limit 1) n)
    select f.id, f.hold from line l cross join lateral (
      select r.id, r.hold from runs r where r.concurrency = p_key
        and r.queue = l.queue and r.name = l.name and r.version = l.version
        and r.slot = 0 and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & -33) = 0 else false end
      order by r.priority, r.eligible_at, r.id limit p_most) f;
end $f$;

-- Whether a key has a line: a run waits for a slot, or is let in and not claimed yet. Rides
-- runs_slot_line.
create or replace function has_line(p_key text) returns boolean language plpgsql stable as $f$
begin
  perform 1 from runs r where r.concurrency = p_key
    and r.slot = 0 and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & -33) = 0 else false end
    limit 1;
  return found;
end $f$;
