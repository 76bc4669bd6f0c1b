-- pawl: inner
-- Applies one transition in a subtransaction of its own, for commit. `verdict` is null if it is
-- committed. An array is null where its one value is, so that absent parts cost nothing.
create or replace function commit_one(
  p_id bigint, p_claim_id bigint, p_turn bigint, p_op text, p_step text, p_state text,
  p_result text, p_error text, p_delay_ms bigint, p_priority smallint,
  p_inbox_seq int, p_parent_id bigint, p_key text, p_detail text, p_worker text, p_next_claim_id bigint,
  out verdict jsonb, out claimable jsonb, out handed jsonb
) language plpgsql as $f$
declare
  v_constraint text;
begin
  claimable := '[]';
  for v_try in 1 .. 2 loop
    begin
      if v_try = 2 then
        -- the run re-enters its unique scope while another run has the key: it gives the key up
        perform 1 from runs r where r.id = p_id for no key update skip locked;
        if not found then
          verdict := '{"verdict": "busy"}';
          return;
        end if;
        update runs r set unique_key = null, unique_scope = null
          where r.id = p_id and r.claim_id = p_claim_id and r.turn = p_turn and r.status = 'executing' and r.locked_by is not null;
      end if;
      select a.others -> 0, a.claimable, a.handed -> 0 -> 1 into verdict, claimable, handed
      from apply_transitions(array[p_id], array[p_claim_id], array[p_turn], array[p_op], array[p_step],
        array[p_state], array[p_result], array[p_error], array[p_delay_ms], array[p_priority], array[p_inbox_seq],
        case when p_parent_id is not null then array[p_parent_id] end, case when p_key is not null then array[p_key] end,
        case when p_detail is not null then array[p_detail] end, p_worker, array[p_next_claim_id], true) a;
      if v_try = 2 and verdict ->> 'verdict' = 'busy' then
        raise lock_not_available;  -- its parent is locked by now: it keeps its key until sent again
      elsif v_try = 2 then
        verdict := coalesce(verdict, '{"verdict": "unique_lost"}');
      end if;
      return;
    exception
      when lock_not_available then
        verdict := '{"verdict": "busy"}';
        claimable := '[]';
        handed := null;
        return;
      when others then
        if not is_row_fault(sqlstate) then
          raise;
        end if;
        get stacked diagnostics v_constraint = constraint_name;
        if v_try = 2 or sqlstate <> '23505' or v_constraint <> 'runs_unique' then
          verdict := jsonb_build_object('verdict', 'failed', 'code', sqlstate, 'message', sqlerrm);
          return;
        end if;
    end;
  end loop;
end $f$;
