-- Makes waiting runs runnable now (the caller has locked them): a spawn whose children have ended, or a wait that a
-- signal has ended. A run that re-enters its unique scope while its key is taken gives the key up. Answers the claimable runs by
-- queue: [[queue, priority, µs], …].
create function wake_runs(p_shard smallint, p_id bigint[], p_now timestamptz) returns jsonb language plpgsql as $f$
declare
  v_id bigint;
  v_claimable jsonb;
begin
  update runs r set status = 'runnable', eligible_at = least(r.eligible_at, p_now)
  from (select p_shard as shard, u.id from unnest(p_id) u(id) limit cardinality(p_id)) v
  where r.shard = v.shard and r.id = v.id and (r.unique_key is null or r.unique_guard is not null);
  for v_id in
    select u.id from unnest(p_id) u(id)
    cross join lateral (select t.status from runs t where t.shard = p_shard and t.id = u.id limit 1) r
    where r.status in ('awaiting_signal', 'awaiting_children')
  loop
    begin
      update runs r set status = 'runnable', eligible_at = least(r.eligible_at, p_now) where r.shard = p_shard and r.id = v_id;
    exception when unique_violation then
      update runs r set status = 'runnable', eligible_at = least(r.eligible_at, p_now), unique_key = null
        where r.shard = p_shard and r.id = v_id;
    end;
  end loop;
  select jsonb_agg(g.entry) into v_claimable from (
    select jsonb_build_array(r.queue, min(r.priority), to_us(min(r.eligible_at))) as entry
    from unnest(p_id) u(id)
    cross join lateral (select t.queue, t.priority, t.eligible_at from runs t where t.shard = p_shard and t.id = u.id limit 1) r
    group by r.queue) g;
  return coalesce(v_claimable, '[]');
end $f$;

-- Children have ended: their parents (locked by the caller) count down, and those that waited for the last one go on, once.
-- The number of the spawn (child_of) keeps children of an earlier spawn from counting. Answers like wake_runs.
create function release_parents(p_shard smallint, p_parent_id bigint[], p_child_of int[], p_now timestamptz) returns jsonb
language plpgsql as $f$
declare
  v_ids bigint[];
begin
  with counted as (
    update runs r set children_pending = r.children_pending - v.ended
    from (select p_shard as shard, u.id, u.child_of, count(*)::int as ended from unnest(p_parent_id, p_child_of) u(id, child_of)
      group by u.id, u.child_of limit cardinality(p_parent_id)) v
    where r.shard = v.shard and r.id = v.id and (r.spawn = v.child_of) is true
    returning r.id, r.status, r.children_pending)
  select array_agg(c.id) into v_ids from counted c where c.status = 'awaiting_children' and c.children_pending = 0;
  return case when v_ids is null then '[]' else wake_runs(p_shard, v_ids, p_now) end;
end $f$;
