-- pawl: call; lock_timeout 100ms
-- Writes into the journals of claimed workflow runs, one entry per position, entries of one run in
-- the order given. One transaction, one answer: JSON [{position, verdict, …}] of all that is not
-- simply recorded, or null. An op is
--   run, transaction     a step that has completed: output or error; p_delay_ms is how long it took
--   retry                a step that failed and runs again after p_delay_ms: attempt and error
--   due                  asks whether the time of a retry has come
--   sleep, wait, invoke  begins the wait, or asks whether it is over: p_delay_ms until its end, or
--                        {"at": …} in p_detail; a wait takes {"event", "match"}, an invoke
--                        {"children"}: the run to start (new_runs)
-- A verdict is one of
--   done     the wait is over, or an earlier call recorded the step (seq, output, error)
--   pending  not yet: due_ms and due_at if it has a due time, and inbox_seq, up to which signals
--            were tried
--   fresh    recorded, and the inbox has more than the worker knows (inbox_seq), or it is paused
--   stale, busy, failed: as in commit
-- With paused, the run, its queue or its definition is paused: begin no further step, and release
-- the claim when the running steps are recorded.
-- p_seq is the place in the order of delivery to the body, if this call completes the entry. The
-- call does not change the run. It only locks it, so that the guard holds.
-- Locks rows in id order first, waiting at most lock_timeout. If a lock or a value fails, tries
-- each entry by itself.
create or replace function record(
  p_run_id bigint[], p_claim_id bigint[], p_name text[], p_op text[], p_seq int[], p_attempt int[],
  p_output text[], p_error text[], p_delay_ms bigint[], p_detail text[], p_inbox_seq int[], p_patient boolean
) returns text language plpgsql as $f$
declare
  v_others jsonb := '[]';
  v_one jsonb;
  v_busy bigint[] := '{}';
begin
  if not begin_write(p_patient) then
    return (select jsonb_agg(jsonb_build_object('position', i, 'verdict', 'busy')) from generate_subscripts(p_run_id, 1) i)::text;
  end if;
  <<together>>
  begin
    exit together when not p_patient;
    v_others := apply_records(p_run_id, p_claim_id, p_name, p_op, p_seq, p_attempt, p_output, p_error, p_delay_ms, p_detail,
      p_inbox_seq, false);
    return nullif(v_others, '[]')::text;
  exception when others then
    if not is_row_fault(sqlstate) then
      raise;
    end if;
    v_others := '[]';
  end;
  for i in 1 .. cardinality(p_run_id) loop
    begin
      if p_run_id[i] = any (v_busy) then
        raise lock_not_available;    -- entries of one run keep their order
      end if;
      v_one := apply_records(p_run_id[i : i], p_claim_id[i : i], p_name[i : i], p_op[i : i], p_seq[i : i], p_attempt[i : i],
        p_output[i : i], p_error[i : i], p_delay_ms[i : i], p_detail[i : i], p_inbox_seq[i : i], true) -> -1;
    exception
      when lock_not_available then
        v_one := '{"verdict": "busy"}';
      when others then
        if not is_row_fault(sqlstate) then
          raise;
        end if;
        v_one := jsonb_build_object('verdict', 'failed', 'code', sqlstate, 'message', sqlerrm);
    end;
    if v_one ->> 'verdict' = 'busy' then
      v_busy := v_busy || p_run_id[i];
    end if;
    if v_one is not null then
      v_others := v_others || jsonb_set(v_one, '{position}', to_jsonb(i));
    end if;
  end loop;
  return nullif(v_others, '[]')::text;
end $f$;
