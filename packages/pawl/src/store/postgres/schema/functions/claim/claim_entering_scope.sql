-- pawl: inner
-- Claims one run that is not yet in its unique scope. The caller (claim) has locked it. If another
-- run holds the key by now, this run gives its key up and goes on: the collision costs one row,
-- never the batch.
-- A run that gave its key up before, when something else made it enter its scope, learns so now
-- (unique_lost).
-- Answers no row if a start that is not committed yet holds the key: the run waits for another
-- claim.
create or replace function claim_entering_scope(p_id bigint, p_worker text, p_claim_id bigint, p_now timestamptz, p_inline int, p_slot smallint)
returns setof claimed_run language plpgsql as $f$
declare
  v_run record;
begin
  select r.status, r.unique_key is null and r.unique_scope is not null as is_lost into v_run from runs r where r.id = p_id;
  if v_run.status not in ('runnable', 'awaiting_signal') then
    return;
  end if;
  begin
    return query select * from take_claims(array[p_id], p_worker, p_claim_id, p_now, p_inline, 0,
      case when v_run.is_lost then 'give up' else 'enter' end, array[p_slot]);
  exception
    when lock_not_available then
      return;
    when unique_violation then
      return query select * from take_claims(array[p_id], p_worker, p_claim_id, p_now, p_inline, 0, 'give up', array[p_slot]);
  end;
end $f$;
