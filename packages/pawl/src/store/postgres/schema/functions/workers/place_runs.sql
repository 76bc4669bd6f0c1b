-- pawl: call
-- Repair, part of recover: makes runs claimable that were started by name before any worker had
-- registered their definition. They take missing values (queue, kind, priority, retention) from the
-- definition.
-- At most p_limit a call, by definition and id, skipping locked runs. Begins at p_after, where the
-- last call stopped, so that a long drain does not walk again over the runs that it has placed.
-- Rides runs_unplaced (a skip scan over its definitions). Answers the queues that got work as JSON,
-- and where it stopped: [name, version, id], or null at the end.
create or replace function place_runs(p_limit int, p_after text default null) returns table (queues text, last text)
language plpgsql as $f$
declare
  v_name text := p_after::jsonb ->> 0;
  v_version int := p_after::jsonb ->> 1;
  v_id bigint := p_after::jsonb ->> 2;
  v_ids bigint[];
begin
  perform require_read_committed();
  v_ids := array(
    with recursive waiting(name, version) as (
        (select r.name, r.version from runs r where (r.hold & 10) <> 0 and (r.hold & 2) <> 0
          and (r.name, r.version, r.id) > (coalesce(v_name, ''), coalesce(v_version, 0), coalesce(v_id, 0))
          order by r.name, r.version, r.id limit 1)
      union all
        select n.name, n.version from waiting cross join lateral (
          select r.name, r.version from runs r
          where (r.hold & 10) <> 0 and (r.hold & 2) <> 0 and (r.name, r.version) > (waiting.name, waiting.version)
          order by r.name, r.version limit 1) n)
    select l.id from waiting
    join definitions d on d.name = waiting.name and d.version = waiting.version
    cross join lateral (select r.id from runs r
      where (r.hold & 10) <> 0 and (r.hold & 2) <> 0
        -- as ranges of the index: with equality, the planner would walk the primary key instead
        and (r.name, r.version) <= (waiting.name, waiting.version)
        and (r.name, r.version, r.id) > (waiting.name, waiting.version,
          case when (waiting.name, waiting.version) = (v_name, v_version) then v_id else 0 end)
      order by r.name, r.version, r.id limit p_limit for no key update skip locked) l
    limit p_limit);
  if cardinality(v_ids) = p_limit then
    select jsonb_build_array(r.name, r.version, r.id::text)::text into last from runs r
      where r.id = v_ids[p_limit];
  end if;
  with placed as (
    update runs r set hold = r.hold & ~2, kind = coalesce(r.kind, d.kind), queue = coalesce(r.queue, d.queue),
      priority = coalesce(r.priority, d.priority), retention = coalesce(r.retention, d.kept),
      has_extras = case when d.timeout is not null then true else r.has_extras end
    from (select u.id, d.*, least(d.retention, s.retention_ceiling) as kept from settings s, unnest(v_ids) u(id)
      cross join lateral (select t.name, t.version from runs t where t.id = u.id limit 1) t
      join definitions d on d.name = t.name and d.version = t.version limit p_limit) d
    where r.id = d.id
    returning r.id, r.name, r.queue, d.timeout, r.eligible_at + d.timeout as deadline_at
  ), timed as (
    insert into extras (run_id, name, timeout, deadline_at)
    select p.id, p.name, p.timeout, p.deadline_at from placed p where p.timeout is not null
    on conflict (run_id) do update set timeout = coalesce(extras.timeout, excluded.timeout),
      deadline_at = coalesce(extras.deadline_at, excluded.deadline_at))
  select coalesce(jsonb_agg(distinct p.queue), '[]')::text into queues from placed p;
  return next;
end $f$;
