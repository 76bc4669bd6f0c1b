-- Claims one run that is not yet in its unique scope (see claim, which has locked it). If another run holds the key
-- by now, this one gives its key up and goes on: the collision costs one row, never the batch.
create function claim_entering_scope(p_shard smallint, p_id bigint, p_worker text, p_claim_id bigint)
returns table (
  id bigint, name text, version int, step text, priority smallint, attempt int, crashes int, inbox_seq int,
  input text, state text, unique_lost boolean)
language plpgsql as $f$
#variable_conflict use_column
declare v_lost boolean := false;
begin
  begin
    update runs r set status = 'executing', locked_by = p_worker, claim_id = p_claim_id, turn = 0
    where r.shard = p_shard and r.id = p_id and r.status in ('runnable', 'awaiting_signal');
  exception
    when lock_not_available then
      return;    -- a start that is not committed yet holds the key: this run waits for another claim
    when unique_violation then
      v_lost := true;
      update runs r set status = 'executing', locked_by = p_worker, claim_id = p_claim_id, turn = 0, unique_key = null
      where r.shard = p_shard and r.id = p_id and r.status in ('runnable', 'awaiting_signal');
  end;
  if found then
    return query
      select r.id, r.name, r.version, r.step, r.priority, r.attempt, r.crashes, r.inbox_seq,
        case when r.state is null then r.input::text end, r.state::text, v_lost
      from runs r where r.shard = p_shard and r.id = p_id;
  end if;
end $f$;
