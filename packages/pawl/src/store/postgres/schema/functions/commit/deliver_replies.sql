-- pawl: inner
-- Runs that a workflow has invoked have ended: their results come into the inboxes of their parents (locked by the caller), as
-- signals named ~ and the run's id, which no user can send, and wake the parents that wait for them. However full an inbox
-- is. Answers like wake_runs.
create or replace function deliver_replies(p_child_id bigint[], p_now timestamptz) returns jsonb language plpgsql as $f$
declare
  v_ids bigint[];
begin
  with reply as (
    select c.*, p.inbox_seq + row_number() over (partition by c.parent_id order by c.id)::int as seq
    from unnest(p_child_id) u(id)
    cross join lateral (select t.id, t.parent_id, t.status, t.result, t.error from runs t where t.id = u.id limit 1) c
    cross join lateral (select t.inbox_seq from runs t where t.id = c.parent_id
      and t.status not in ('done', 'failed', 'cancelled') limit 1) p
  ), delivered as (
    insert into signals (run_id, seq, name, payload, inserted_at)
    select r.parent_id, r.seq, '~' || r.id,
      jsonb_build_object('status', r.status, 'output', r.result, 'error', r.error), p_now
    from reply r order by r.parent_id, r.seq
    returning run_id, seq, name
  ), counted as (
    update runs r set inbox_seq = v.seq
    from (select d.run_id, max(d.seq) as seq, array_agg(d.name) as names from delivered d group by d.run_id
      limit cardinality(p_child_id)) v
    where r.id = v.run_id
    returning r.id, r.status, r.awaits -> 'names' ?| v.names as is_wanted)
  select array_agg(c.id) into v_ids from counted c where c.status = 'awaiting_signal' and c.is_wanted;
  return case when v_ids is null then '[]' else wake_runs(v_ids, p_now) end;
end $f$;
