-- One transition in a subtransaction of its own (see commit): null if committed, else its verdict.
create function commit_one(
  p_shard smallint, p_id bigint, p_claim_id bigint, p_turn int, p_op text, p_step text, p_state text,
  p_result text, p_error text, p_delay_ms bigint, p_priority smallint
) returns jsonb language plpgsql as $f$
declare
  v_constraint text;
begin
  begin
    return apply_transitions(p_shard, array[p_id], array[p_claim_id], array[p_turn], array[p_op], array[p_step],
      array[p_state], array[p_result], array[p_error], array[p_delay_ms], array[p_priority], true) -> 0;
  exception
    when lock_not_available then
      return jsonb_build_object('verdict', 'busy');
    when unique_violation then
      get stacked diagnostics v_constraint = constraint_name;
      if v_constraint <> 'runs_unique' then
        return jsonb_build_object('verdict', 'failed', 'code', sqlstate, 'message', sqlerrm);
      end if;
    when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
      return jsonb_build_object('verdict', 'failed', 'code', sqlstate, 'message', sqlerrm);
  end;
  -- the run re-enters its unique scope and another holds the key: it gives the key up and goes on
  perform 1 from runs r where r.shard = p_shard and r.id = p_id for no key update skip locked;
  if not found then
    return jsonb_build_object('verdict', 'busy');
  end if;
  update runs r set unique_key = null
    where r.shard = p_shard and r.id = p_id and r.claim_id = p_claim_id and r.turn = p_turn and r.status = 'executing';
  return coalesce(
    apply_transitions(p_shard, array[p_id], array[p_claim_id], array[p_turn], array[p_op], array[p_step],
      array[p_state], array[p_result], array[p_error], array[p_delay_ms], array[p_priority], true) -> 0,
    jsonb_build_object('verdict', 'unique_lost'));
end $f$;
