-- pawl: inner
-- Children have ended: their parents (locked by the caller) count down, and those that waited for the last one go on, once.
-- The number of the spawn (child_of) keeps children of an earlier spawn from counting. Answers like wake_runs.
create or replace function release_parents(p_parent_id bigint[], p_child_of int[], p_now timestamptz) returns jsonb
language plpgsql as $f$
declare
  v_ids bigint[];
begin
  with counted as (
    update runs r set children_pending = r.children_pending - v.ended
    from (select u.id, u.child_of, count(*)::int as ended from unnest(p_parent_id, p_child_of) u(id, child_of)
      group by u.id, u.child_of limit cardinality(p_parent_id)) v
    where r.id = v.id and (r.spawn = v.child_of) is true
    returning r.id, r.status, r.children_pending)
  select array_agg(c.id) into v_ids from counted c where c.status = 'awaiting_children' and c.children_pending = 0;
  return case when v_ids is null then '[]' else wake_runs(v_ids, p_now) end;
end $f$;
