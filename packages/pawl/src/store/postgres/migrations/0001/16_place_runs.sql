-- Repair, with every reap: runs that were parked because no live worker served their definition (park_unserved), or none
-- had ever registered it, become claimable once one does. What was not given at the start (queue, kind, priority,
-- retention) is taken from the definition. At most p_limit a call, in id order, skipping what is locked.
-- Rides runs_unserved (a skip scan over its definitions). Answers the queues that got work.
create function place_runs(p_shard smallint, p_limit int) returns setof text language plpgsql as $f$
declare
  v_ids bigint[];
begin
  perform require_read_committed();
  v_ids := array(
    with recursive waiting(name, version) as (
        (select r.name, r.version from runs r where r.shard = p_shard and (r.hold & 2) <> 0 order by r.name, r.version limit 1)
      union all
        select n.name, n.version from waiting cross join lateral (
          select r.name, r.version from runs r
          where r.shard = p_shard and (r.hold & 2) <> 0 and (r.name, r.version) > (waiting.name, waiting.version)
          order by r.name, r.version limit 1) n)
    select l.id from waiting
    join definitions d on d.name = waiting.name and d.version = waiting.version and is_served(d.name, d.version, null)
    cross join lateral (select r.id from runs r
      where r.shard = p_shard and (r.hold & 2) <> 0 and r.name = waiting.name and r.version = waiting.version
        and is_served(r.name, r.version, coalesce(r.queue, d.queue))
      order by r.id limit p_limit for no key update skip locked) l
    limit p_limit);
  return query
    with placed as (
      update runs r set hold = r.hold & ~2, kind = coalesce(r.kind, d.kind), queue = coalesce(r.queue, d.queue),
        priority = coalesce(r.priority, d.priority), retention = coalesce(r.retention, d.kept)
      from (select p_shard as shard, u.id, d.*, least(d.retention, s.retention_ceiling) as kept from settings s, unnest(v_ids) u(id)
        cross join lateral (select t.name, t.version from runs t where t.shard = p_shard and t.id = u.id limit 1) t
        join definitions d on d.name = t.name and d.version = t.version limit p_limit) d
      where r.shard = d.shard and r.id = d.id
      returning r.queue)
    select distinct p.queue from placed p;
end $f$;
