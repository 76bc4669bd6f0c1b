-- Takes runs that nobody serves out of the way of claims, and out of the line for their partition keys: of the runs p_id,
-- which have been due for a minute, those whose definition no live worker serves in their queue get hold bit 2, and so do others of
-- that definition that are blocked by the same key, up to 1,000: who stands behind them would wait for each. place_runs brings
-- them back. Waits for no run, and for their keys no longer than lock_timeout.
create function park_unserved(p_shard smallint, p_id bigint[], p_now timestamptz) returns void language plpgsql as $f$
declare
  v_ids bigint[];
  v_keys text[];
begin
  v_ids := array(
    with definition as materialized (
      select r.name, r.version, r.queue, array_agg(u.id) as ids from unnest(p_id) u(id)
      cross join lateral (select t.name, t.version, t.queue from runs t where t.shard = p_shard and t.id = u.id limit 1) r
      group by r.name, r.version, r.queue)
    select l.id from definition d cross join lateral unnest(d.ids) u(id)
    cross join lateral (select t.id from runs t
      where t.shard = p_shard and t.id = u.id and t.hold = 0 and t.status in ('runnable', 'awaiting_signal')
      limit 1 for no key update skip locked) l
    where not is_served(d.name, d.version, d.queue));
  v_ids := v_ids || array(
    select l.id
    from (select distinct r.partition_key, r.name, r.version, r.queue from unnest(v_ids) u(id)
      cross join lateral (select t.* from runs t where t.shard = p_shard and t.id = u.id limit 1) r
      where r.partition_key is not null) d
    cross join lateral (select t.* from runs t where t.shard = p_shard and t.partition_key = d.partition_key and (t.hold & 1) <> 0
      order by t.id limit 1000) b
    cross join lateral (select t.id from runs t
      where t.shard = p_shard and t.id = b.id and t.hold = 1 and t.status in ('runnable', 'awaiting_signal')
      limit 1 for no key update skip locked) l
    where (b.name, b.version, b.queue) = (d.name, d.version, d.queue) and b.eligible_at < p_now - interval '1 minute'
    limit 1000);
  with parked as (
    update runs r set hold = r.hold | 2
    from (select p_shard as shard, u.id from unnest(v_ids) u(id) limit cardinality(v_ids)) v
    where r.shard = v.shard and r.id = v.id
    returning r.partition_key)
  select array_agg(distinct p.partition_key) filter (where p.partition_key is not null) into v_keys from parked p;
  if v_keys is not null then
    perform free_keys(p_shard, v_keys, p_now, null, null, null, null);
  end if;
end $f$;
