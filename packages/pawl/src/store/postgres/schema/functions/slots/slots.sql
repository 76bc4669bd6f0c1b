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
-- slots_held.
create or replace function free_slot_count(p_key text) returns int language plpgsql stable as $f$
begin
  return greatest(slots_of(p_key) - (select count(*) from slots s where s.concurrency = p_key and s.slot > 0)::int, 0);
end $f$;

-- The lowest free slots of a key, at most p_most. Rides slots_held.
create or replace function free_slots_of(p_key text, p_most int) returns smallint[] language plpgsql stable as $f$
declare
  v_held smallint[] := array(select s.slot from slots s where s.concurrency = p_key and s.slot > 0);
  v_free int := least(slots_of(p_key) - cardinality(v_held), p_most);
begin
  if v_free <= 0 then
    return '{}';
  end if;
  return array(select n::smallint from generate_series(1, cardinality(v_held) + v_free) n where n <> all (v_held) limit v_free);
end $f$;

-- Gives runs that the caller has locked the slots at the same positions, or (null) puts them in line
-- at their place.
create or replace function put_slots(p_id bigint[], p_slot smallint[]) returns void language plpgsql as $f$
begin
  insert into slots (run_id, concurrency, slot, queue, name, version, priority, eligible_at)
  select r.id, r.concurrency, coalesce(u.slot, 0::smallint), r.queue, r.name, r.version, r.priority, r.eligible_at
  from unnest(p_id, p_slot) u(id, slot)
  cross join lateral (select t.* from runs t where t.id = u.id limit 1) r
  on conflict (run_id) do update set concurrency = excluded.concurrency, slot = excluded.slot, queue = excluded.queue,
    name = excluded.name, version = excluded.version, priority = excluded.priority, eligible_at = excluded.eligible_at;
end $f$;

-- Takes back the slots of runs that the caller has locked, or their place in line. Answers the keys of
-- these runs: also a run without a row may have kept others waiting, because it was first.
create or replace function leave_slots(p_id bigint[]) returns text[] language plpgsql as $f$
declare
  v_keys text[];
begin
  with gone as (
    delete from slots s using (select u.id from unnest(p_id) u(id) limit cardinality(p_id)) v
    where s.run_id = v.id
    returning s.concurrency)
  select array_agg(distinct k.key) into v_keys from (
    select g.concurrency as key from gone g
    union all
    select r.concurrency from unnest(p_id) u(id)
    cross join lateral (select t.concurrency from runs t where t.id = u.id limit 1) r where r.concurrency is not null) k;
  return coalesce(v_keys, '{}');
end $f$;

-- Whether nothing but a slot keeps a run from being claimed, when it is due. An operator may hold a
-- run that is in line.
create or replace function is_in_line(p_id bigint) returns boolean language plpgsql stable as $f$
begin
  perform 1 from runs r where r.id = p_id and (r.status in ('runnable', 'awaiting_signal') and (r.hold & -33) = 0) is true;
  return found;
end $f$;

-- The first p_most runs in line for a slot, of each definition in each queue: the lines of a key. Each
-- line is in the order (priority, eligible_at, id). Which line gets the next slot is decided by the
-- workers: the first to claim takes it. So runs that no worker serves, or whose workers are busy,
-- keep no others waiting. Rides slots_line: a skip scan over the definitions.
create or replace function first_in_lines(p_key text, p_most int) returns table (id bigint, hold smallint)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    with recursive line(queue, name, version) as (
        (select s.queue, s.name, s.version from slots s where s.concurrency = p_key and s.slot = 0
          order by s.queue, s.name, s.version limit 1)
      union all
        select n.queue, n.name, n.version from line l cross join lateral (
          select s.queue, s.name, s.version from slots s where s.concurrency = p_key and s.slot = 0
            and (s.queue, s.name, s.version) > (l.queue, l.name, l.version)
          order by s.queue, s.name, s.version limit 1) n)
    select f.run_id, r.hold from line l cross join lateral (
      select s.run_id from slots s where s.concurrency = p_key and s.queue = l.queue and s.name = l.name and s.version = l.version
        and s.slot = 0 and is_in_line(s.run_id)
      order by s.priority, s.eligible_at, s.run_id limit p_most) f
    cross join lateral (select t.hold from runs t where t.id = f.run_id limit 1) r;
end $f$;

-- Whether a key has a line: a run waits for a slot, or is let in and not claimed yet. Rides
-- slots_line.
create or replace function has_line(p_key text) returns boolean language plpgsql stable as $f$
begin
  perform 1 from slots s where s.concurrency = p_key and s.slot = 0 limit 1;
  return found;
end $f$;

-- The runs that have a slot of a key although no worker holds them. Only under the lock of the key is
-- that sure to stay so.
create or replace function lost_slots(p_key text) returns bigint[] language plpgsql stable as $f$
begin
  return array(select s.run_id from slots s where s.concurrency = p_key and s.slot > 0
    and (select r.id from runs r where r.id = s.run_id and (r.locked_by is not null) is true limit 1) is null);
end $f$;
