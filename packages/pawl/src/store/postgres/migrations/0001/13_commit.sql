-- Commits one transition per position, of claims that p_worker's steps hold. One transaction, one answer row:
-- how many were committed, and the others as JSON [{position, verdict, code, message}], verdict one of
--   already      applied by an earlier call whose reply was lost        (turn is one ahead)
--   stale        the claim is gone; nothing was written
--   busy         somebody's open transaction holds the row; nothing was written, send it again later
--   failed       the database refused the values (code is the SQLSTATE); nothing was written, the claim goes on
--   unique_lost  committed, but the run re-entered its unique scope while its key was taken and gave the key up
-- All rows are locked in id order first, waiting at most lock_timeout; if that or any value fails, each run is tried
-- by itself, so one bad or locked row never costs the others. p_patient = false goes there at once (the slow lane).
create function commit(
  p_shard smallint, p_id bigint[], p_claim_id bigint[], p_turn int[], p_op text[], p_step text[], p_state text[],
  p_result text[], p_error text[], p_delay_ms bigint[], p_priority smallint[], p_patient boolean
) returns table (committed int, others text)
language plpgsql as $f$
declare
  v_others jsonb := '[]';
  v_one jsonb;
begin
  perform require_read_committed();
  perform require_durable_commit();
  if p_patient then
    begin
      v_others := apply_transitions(p_shard, p_id, p_claim_id, p_turn, p_op, p_step, p_state, p_result, p_error,
        p_delay_ms, p_priority, false);
      committed := cardinality(p_id) - jsonb_array_length(v_others);
      others := case when v_others <> '[]' then v_others::text end;
      return next;
      return;
    exception when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
    end;
  end if;
  for i in 1 .. cardinality(p_id) loop
    v_one := commit_one(p_shard, p_id[i], p_claim_id[i], p_turn[i], p_op[i], p_step[i], p_state[i], p_result[i], p_error[i],
      p_delay_ms[i], p_priority[i]);
    if v_one is not null then
      v_others := v_others || jsonb_set(v_one, '{position}', to_jsonb(i));
    end if;
  end loop;
  committed := cardinality(p_id) - jsonb_array_length(v_others);
  others := case when v_others <> '[]' then v_others::text end;
  return next;
end $f$;
