-- pawl: call
-- Milliseconds until a worker of these queues and definitions (name@version, parallel arrays) has
-- something to do; 0 or less: now; null: nothing is due at any time. That is the first of
--   - a claimable run, unless its queue or definition is paused, and nothing in a held database
--   - a run that was started before its definition was registered: now
--   - the tick of a schedule that starts one of these definitions, unless it keeps failing
--   - the end of the lease of a worker that holds runs and serves one of these definitions: if it has
--     died, its runs are reclaimed then
-- Rides runs_claim, one entry for each priority of each definition, runs_unplaced, schedules_due and
-- runs_holders, one entry for each worker. Locks nothing.
create or replace function next_due(p_queue text[], p_name text[], p_version int[]) returns double precision
language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_priorities constant int := 200;
  v_now timestamptz := clock();
  v_first timestamptz;
begin
  if is_held() then
    return null;
  end if;
  with recursive line as materialized (
      select q.queue, d.name, d.version from unnest(p_queue) q(queue), unnest(p_name, p_version) d(name, version)
      where not is_paused(q.queue, d.name, d.version)
    ), level(queue, name, version, priority, n) as (
      select l.queue, l.name, l.version, -32769, 0 from line l
    union all
      select l.queue, l.name, l.version, x.priority::int, l.n + 1 from level l cross join lateral (
        select r.priority from runs r where r.queue = l.queue and r.name = l.name and r.version = l.version
          and r.priority > l.priority
          and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end
        order by r.priority limit 1) x
      where l.n < c_priorities
    )
  select min(f.eligible_at) into v_first from level l cross join lateral (
    select r.eligible_at from runs r
    where r.queue = l.queue and r.name = l.name and r.version = l.version and r.priority = l.priority
      and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end
    order by r.eligible_at limit 1) f;

  v_first := least(v_first, (
    select v_now from unnest(p_name, p_version) d(name, version)
    where exists (select 1 from runs r
      where (r.hold & 10) <> 0 and r.name = d.name and r.version = d.version and r.hold = 2)
    limit 1));
  v_first := least(v_first, (
    select s.due_at from schedules s
    where s.due_at is not null and s.failures = 0 and s.run ->> 'name' = any (p_name) order by s.due_at limit 1));
  -- leases count by clock_timestamp(), which a test does not move
  v_first := least(v_first, v_now + (
    select min(w.seen_at + w.lease) - clock_timestamp() from workers w
    where w.serves && array(select d.name || '@' || d.version from unnest(p_name, p_version) d(name, version))
      and exists (select 1 from runs r where r.locked_by = w.id)));
  return ms_until(v_first, v_now);
end $f$;
