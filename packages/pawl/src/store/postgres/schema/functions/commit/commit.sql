-- pawl: call; lock_timeout 100ms
-- Commits one transition per position, for claims that p_worker holds. One transaction, one answer
-- row: the number committed, and the others as JSON [{position, verdict, …}]. Also the claimable
-- runs made, by queue ([[queue, priority, µs], …]), and the runs handed over to p_worker
-- ([[position, run], …]). With a claim id at its position (p_next_claim_id), a transition that
-- frees a partition key claims the next run in line for it. A verdict is one of
--   already      an earlier call applied it and its reply was lost (turn is one ahead)
--   stale        the claim is gone; nothing was written. With paused: committed, but the claim was
--                not kept, because the run must begin no further step
--   busy         another open transaction has the row locked; nothing was written, send it again
--                later
--   failed       the database refused the values (code is the SQLSTATE); nothing was written, and
--                the worker keeps the claim
--   unique_lost  committed, but the run re-entered its unique scope while its key was taken and
--                gave the key up
--   fresh        committed with the claim kept; the inbox has more than the worker knows (inboxSeq)
-- Locks all rows in id order, waiting at most lock_timeout. If a lock or a value fails, tries each
-- run by itself, so that one bad or locked row never costs the others. p_patient = false goes one by
-- one at once (the slow lane). The end of a lone run goes to finish first.
create or replace function commit(
  p_id bigint[], p_claim_id bigint[], p_turn bigint[], p_op text[], p_step text[], p_state text[],
  p_result text[], p_error text[], p_delay_ms bigint[], p_priority smallint[],
  p_inbox_seq int[], p_parent_id bigint[], p_key text[], p_detail text[], p_worker text, p_next_claim_id bigint[], p_patient boolean
) returns table (committed int, others text, claimable text, handed text)
language plpgsql as $f$
declare
  v_others jsonb := '[]';
  v_claimable jsonb := '[]';
  v_handed jsonb := '[]';
  v_one record;
begin
  if not begin_write(p_patient) and exists (select 1 from runs r where r.id = any (p_id) and r.kind = 'workflow') then
    committed := 0;
    others := (select jsonb_agg(jsonb_build_object('position', i, 'verdict', 'busy')) from generate_subscripts(p_id, 1) i)::text;
    return next;
    return;
  end if;
  <<applied>>
  begin
    if p_patient then
      begin
        select a.others, a.claimable, a.handed into v_others, v_claimable, v_handed
        from apply_transitions(p_id, p_claim_id, p_turn, p_op, p_step, p_state, p_result, p_error, p_delay_ms, p_priority,
          p_inbox_seq, p_parent_id, p_key, p_detail, p_worker, p_next_claim_id, false) a;
        exit applied;
      exception when others then
        if not is_row_fault(sqlstate) then
          raise;
        end if;
        v_others := '[]';
        v_claimable := '[]';
        v_handed := '[]';
      end;
    end if;
    for i in 1 .. cardinality(p_id) loop
      select o.verdict, o.claimable, o.handed into v_one
      from commit_one(p_id[i], p_claim_id[i], p_turn[i], p_op[i], p_step[i], p_state[i], p_result[i], p_error[i],
        p_delay_ms[i], p_priority[i], p_inbox_seq[i], p_parent_id[i], p_key[i], p_detail[i], p_worker, p_next_claim_id[i]) o;
      if v_one.verdict is not null then
        v_others := v_others || jsonb_set(v_one.verdict, '{position}', to_jsonb(i));
      end if;
      v_claimable := v_claimable || v_one.claimable;
      if v_one.handed is not null then
        v_handed := v_handed || jsonb_build_array(jsonb_build_array(i, v_one.handed));
      end if;
    end loop;
  end applied;
  committed := cardinality(p_id) - jsonb_array_length(v_others);
  others := case when v_others <> '[]' then v_others::text end;
  claimable := case when v_claimable <> '[]' then v_claimable::text end;
  handed := case when v_handed <> '[]' then v_handed::text end;
  return next;
end $f$;
