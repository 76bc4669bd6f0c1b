-- pawl: inner
-- Makes waiting runs runnable now (the caller has locked them): a spawn whose children have ended, or a wait that a
-- signal has ended. A run that re-enters its unique scope while its key is taken gives the key up. Answers the claimable runs by
-- queue: [[queue, priority, µs], …].
create or replace function wake_runs(p_id bigint[], p_now timestamptz) returns jsonb language plpgsql as $f$
declare
  v_id bigint;
  v_claimable jsonb;
begin
  update runs r set status = 'runnable', eligible_at = least(r.eligible_at, p_now)
  from (select u.id from unnest(p_id) u(id) limit cardinality(p_id)) v
  where r.id = v.id and (r.unique_key is null or r.unique_guard is not null);
  for v_id in
    select u.id from unnest(p_id) u(id)
    cross join lateral (select t.status from runs t where t.id = u.id limit 1) r
    where r.status in ('awaiting_signal', 'awaiting_children')
  loop
    begin
      update runs r set status = 'runnable', eligible_at = least(r.eligible_at, p_now) where r.id = v_id;
    exception when unique_violation then
      update runs r set status = 'runnable', eligible_at = least(r.eligible_at, p_now), unique_key = null
        where r.id = v_id;
    end;
  end loop;
  select jsonb_agg(g.entry) into v_claimable from (
    select jsonb_build_array(r.queue, min(r.priority), to_us(min(r.eligible_at))) as entry
    from unnest(p_id) u(id)
    cross join lateral (select t.queue, t.priority, t.eligible_at from runs t where t.id = u.id limit 1) r
    group by r.queue) g;
  return coalesce(v_claimable, '[]');
end $f$;
