-- pawl: inner
-- Acts on runs for a bulk operation. Answers {results: [{run_id, outcome, reason, rerun_id, tries}, …],
-- queues}. A result without an outcome is still pending: the run was locked. Tries all at
-- once. If that fails because of a run, tries each in a subtransaction. A cancellation is always
-- tried alone, because it locks other runs too.
create or replace function act_on_runs(p_op bulk_operations, p_id bigint[]) returns jsonb language plpgsql as $f$
declare
  c_busy constant int := 5;    -- each has cost 100 ms: leave the rest to the next batch
  v_busy int := 0;
  v_id bigint;
  v_one jsonb;
  v_all jsonb := '{"results": [], "queues": []}';
begin
  if p_op.action <> 'cancel' then
    begin
      return act_on_all(p_op, p_id);
    exception when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
    end;
  end if;
  foreach v_id in array p_id loop
    begin
      v_one := act_on_all(p_op, array[v_id]);
    exception when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
      v_busy := v_busy + (sqlstate = '55P03')::int;
      v_one := jsonb_build_object('queues', '[]'::jsonb, 'results', jsonb_build_array(
        case when sqlstate = '55P03' then jsonb_build_object('run_id', v_id, 'tries', 1)
          else jsonb_build_object('run_id', v_id, 'outcome', 'failed', 'reason', left(sqlerrm, 1000), 'tries', 0) end));
    end;
    v_all := jsonb_build_object('results', v_all -> 'results' || (v_one -> 'results'), 'queues', v_all -> 'queues' || (v_one -> 'queues'));
    exit when v_busy >= c_busy;
  end loop;
  return v_all;
end $f$;

-- The same without a net: one run that cannot be written fails the call.
create or replace function act_on_all(p_op bulk_operations, p_id bigint[]) returns jsonb language plpgsql as $f$
declare
  v_options jsonb := p_op.options;
  v_count int := cardinality(p_id);
  v_results jsonb;
  v_queues jsonb := '[]';
begin
  case p_op.action
    when 'rerun' then
      select jsonb_agg(bulk_result(p_id[r.position], r.verdict = 'rerun', r.verdict, r.id)),
        coalesce(jsonb_agg(distinct r.queue) filter (where r.id is not null), '[]')
      into v_results, v_queues
      from rerun(p_id, v_options ->> 'from', v_options ->> 'input', v_options ->> 'state', (v_options ->> 'version')::int, null) r;
    when 'cancel' then
      select bulk_result(p_id[1], c.verdict = 'cancelled', c.verdict),
        coalesce((select jsonb_agg(distinct e.value -> 0) from jsonb_array_elements(c.claimable::jsonb) e), '[]')
      into v_results, v_queues
      from cancel(p_id[1], v_options ->> 'reason', coalesce((v_options ->> 'cascade')::boolean, false)) c;
      v_results := jsonb_build_array(v_results);
    when 'signal' then
      select jsonb_agg(bulk_result(p_id[s.position], s.verdict = 'delivered', s.verdict)), coalesce(jsonb_agg(distinct q.queue)
        filter (where q.queue is not null), '[]')
      into v_results, v_queues
      from signal(p_id, array_fill(v_options ->> 'signal', array[v_count]), array_fill(coalesce(v_options ->> 'payload', '{}'), array[v_count]),
        array_fill(v_options ->> 'dedupKey', array[v_count]), false) s
      left join lateral (select e.value -> 0 as queue from jsonb_array_elements(s.claimable::jsonb) e) q on true;
    when 'delete' then
      v_results := delete_runs(p_id);
    when 'pause' then
      select jsonb_agg(bulk_result(p.id, p.verdict = 'paused', p.verdict)) into v_results
      from pause_runs(p_id, p_op.by ->> 'who', v_options ->> 'reason') p;
    when 'resume' then
      select jsonb_agg(bulk_result(p.id, p.verdict = 'resumed', p.verdict)), coalesce(jsonb_agg(distinct q.queue)
        filter (where q.queue is not null), '[]')
      into v_results, v_queues
      from resume_runs(p_id) p
      left join lateral (select e.value -> 0 as queue from jsonb_array_elements(p.claimable::jsonb) e) q on true;
  end case;
  return jsonb_build_object('results', v_results, 'queues', v_queues);
end $f$;

-- One result. `busy`: the run was locked and stays pending.
create or replace function bulk_result(p_run_id bigint, p_is_done boolean, p_reason text, p_rerun_id bigint default null) returns jsonb
language sql immutable as $$
  select jsonb_build_object('run_id', p_run_id, 'outcome', case when p_is_done then 'done' when p_reason <> 'busy' then 'skipped' end,
    'reason', case when not p_is_done and p_reason <> 'busy' then p_reason end, 'rerun_id', p_rerun_id,
    'tries', case when p_reason = 'busy' then 1 else 0 end)
$$;
