-- pawl: inner
-- Acts on runs for a bulk operation. Answers by position the outcome (done, skipped, failed; null:
-- the run was locked, or was not tried), the reason, and the new run of a rerun; and whether runs
-- became claimable. Tries all at once. If that fails because of a run, tries each in a
-- subtransaction. A cancellation is always tried alone, because it locks other runs too. The first
-- locked run costs lock_timeout (100 ms, by work_bulk), each further one 5 ms.
create or replace function act_on_runs(
  p_op bulk_operations, p_id bigint[], out outcome text[], out reason text[], out rerun_id bigint[], out woke boolean
) language plpgsql as $f$
declare
  v_one record;
begin
  if p_op.action <> 'cancel' then
    begin
      select a.* into outcome, reason, rerun_id, woke from act_on_all(p_op, p_id) a;
      return;
    exception when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
    end;
  end if;
  outcome := array_fill(null::text, array[cardinality(p_id)]);
  reason := outcome;
  rerun_id := array_fill(null::bigint, array[cardinality(p_id)]);
  woke := false;
  for i in 1 .. cardinality(p_id) loop
    begin
      select a.* into v_one from act_on_all(p_op, p_id[i : i]) a;
      outcome[i] := v_one.outcome[1];
      reason[i] := v_one.reason[1];
      rerun_id[i] := v_one.rerun_id[1];
      woke := woke or v_one.woke;
    exception when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
      if sqlstate = '55P03' then
        perform set_config('lock_timeout', '5ms', true);
      else
        outcome[i] := 'failed';
        reason[i] := left(sqlerrm, 1000);
      end if;
    end;
  end loop;
  perform set_config('lock_timeout', '100ms', true);
end $f$;

-- The same without a net: one run that cannot be written fails the call.
create or replace function act_on_all(
  p_op bulk_operations, p_id bigint[], out outcome text[], out reason text[], out rerun_id bigint[], out woke boolean
) language plpgsql as $f$
declare
  v_options jsonb := p_op.options;
  v_count int := cardinality(p_id);
  v_done text;                     -- the verdict of a run that was acted on
begin
  case p_op.action
    when 'rerun' then
      v_done := 'rerun';
      select r.verdict, r.new_id into reason, rerun_id from rerun_all(p_id, v_options ->> 'from', v_options ->> 'input', v_options ->> 'state',
        (v_options ->> 'version')::int) r;
    when 'cancel' then
      v_done := 'cancelled';
      select array[c.verdict] into reason from cancel_run(p_id[1], v_options ->> 'reason', coalesce((v_options ->> 'cascade')::boolean, false)) c;
    when 'signal' then
      v_done := 'delivered';
      select array_agg(s.verdict order by s.position) into reason from signal(p_id, array_fill(v_options ->> 'signal', array[v_count]),
        array_fill(coalesce(v_options ->> 'payload', '{}'), array[v_count]), array_fill(v_options ->> 'dedupKey', array[v_count]), false) s;
    when 'delete' then
      v_done := 'deleted';
      reason := delete_runs(p_id);
    when 'pause' then
      v_done := 'paused';
      select array_agg(p.verdict order by array_position(p_id, p.id)) into reason
        from pause_runs(p_id, p_op.actor ->> 'who', v_options ->> 'reason') p;
    when 'resume' then
      v_done := 'resumed';
      select array_agg(p.verdict order by array_position(p_id, p.id)) into reason from resume_runs(p_id) p;
  end case;
  woke := v_done <> 'deleted' and v_done = any (reason);
  select array_agg(case when u.verdict = v_done then 'done' when u.verdict <> 'busy' then 'skipped' end order by u.o),
    array_agg(case when u.verdict not in (v_done, 'busy') then u.verdict end order by u.o)
  into outcome, reason from unnest(reason) with ordinality u(verdict, o);
end $f$;
