-- Locks the runs in id order, then applies each transition whose guard (id, claim id, turn, executing) still holds.
-- Answers a JSON array of the others: {position, verdict: already | stale | busy}.
-- Runs are joined by primary key, never by ctid: a row whose lock had to wait has moved. In every function of this
-- kind the batch comes first in the join, whatever the planner believes of the table: the batch is fenced by a LIMIT,
-- brings the shard along, and no other condition on runs can use an index (else: 500 × the table, 200 ms a batch).
create function apply_transitions(
  p_shard smallint, p_id bigint[], p_claim_id bigint[], p_turn int[], p_op text[], p_step text[], p_state text[],
  p_result text[], p_error text[], p_delay_ms bigint[], p_priority smallint[], p_skip_locked boolean
) returns jsonb language plpgsql as $f$
declare
  v_now timestamptz := now();
  v_locked bigint[];
  v_kept int[];
  v_ended int[];
begin
  if p_skip_locked then
    v_locked := array(
      select l.id from (select u.id from unnest(p_id) u(id) order by u.id) v
      cross join lateral (select r.id from runs r where r.shard = p_shard and r.id = v.id limit 1 for no key update skip locked) l);
  else
    perform 1 from (select u.id from unnest(p_id) u(id) order by u.id) v
      cross join lateral (select 1 from runs r where r.shard = p_shard and r.id = v.id limit 1 for no key update) l;
  end if;

  -- the claim is kept: no indexed column changes, so the update is HOT. (status is named only because it costs
  -- less: without any column of the generated one, PostgreSQL 18 seems to prepare its expression for every row.)
  if 'keep' = any (p_op) then
    with kept as (
      update runs r set status = r.status, turn = r.turn + 1, attempt = 0, crashes = 0, step = v.step,
        state = coalesce(v.state, r.state)
      from (select p_shard as shard, u.id, u.claim_id, u.turn, u.step, u.state::jsonb as state, u.o::int
            from unnest(p_id, p_claim_id, p_turn, p_op, p_step, p_state) with ordinality u(id, claim_id, turn, op, step, state, o)
            where u.op = 'keep' limit cardinality(p_id)) v
      where r.shard = v.shard and r.id = v.id and r.claim_id = v.claim_id and r.turn = v.turn
        and (r.status = 'executing') is true
        and (v_locked is null or r.id = any (v_locked))
      returning v.o)
    select array_agg(kept.o) into v_kept from kept;
  end if;

  -- the claim ends
  if coalesce(cardinality(v_kept), 0) < cardinality(p_id) then
    with ended as (
      update runs r set
        turn = r.turn + 1,
        locked_by = null,
        status = v.status,
        step = coalesce(v.step, r.step),
        state = coalesce(v.state, r.state),
        result = v.result,
        error = v.error,
        priority = coalesce(v.priority, r.priority),
        attempt = case when v.op = 'next' then 0 when v.op = 'retry' then r.attempt + 1 else r.attempt end,
        crashes = case when v.op = 'retry' then r.crashes else 0 end,
        eligible_at = coalesce(v.eligible_at, r.eligible_at),
        completed_at = v.completed_at,
        expires_at = v.completed_at + r.retention
      from (select p_shard as shard, u.id, u.claim_id, u.turn, u.op, u.step, u.priority, u.o::int,
              u.state::jsonb as state, u.result::jsonb as result, u.error::jsonb as error,
              case when u.op = 'done' then 'done'::run_status when u.op = 'stop' then 'failed'::run_status
                else 'runnable'::run_status end as status,
              case when u.op in ('done', 'stop') then v_now end as completed_at,
              case when u.op = 'next' then v_now when u.op = 'retry' then v_now + u.delay_ms * interval '1 millisecond' end as eligible_at
            from unnest(p_id, p_claim_id, p_turn, p_op, p_step, p_state, p_result, p_error, p_delay_ms, p_priority)
              with ordinality u(id, claim_id, turn, op, step, state, result, error, delay_ms, priority, o)
            where u.op <> 'keep' limit cardinality(p_id)) v
      where r.shard = v.shard and r.id = v.id and r.claim_id = v.claim_id and r.turn = v.turn
        and (r.status = 'executing') is true
        and (v_locked is null or r.id = any (v_locked))
      returning v.o)
    select array_agg(ended.o) into v_ended from ended;
  end if;

  v_ended := coalesce(v_kept, '{}') || coalesce(v_ended, '{}');
  if cardinality(v_ended) = cardinality(p_id) then
    return '[]';
  end if;
  return (
    select jsonb_agg(jsonb_build_object('position', u.o, 'verdict',
      case when u.id <> all (v_locked) and r.id is not null then 'busy'
           when r.claim_id = u.claim_id and r.turn = u.turn + 1 then 'already'
           else 'stale' end))
    from unnest(p_id, p_claim_id, p_turn) with ordinality u(id, claim_id, turn, o)
    left join lateral (select t.id, t.claim_id, t.turn from runs t where t.shard = p_shard and t.id = u.id limit 1) r on true
    where u.o <> all (v_ended));
end $f$;
