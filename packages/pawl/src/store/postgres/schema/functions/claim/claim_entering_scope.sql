-- pawl: inner
-- Claims one run that is not yet in its unique scope (see claim, which has locked it). If another run holds the key
-- by now, this one gives its key up and goes on: the collision costs one row, never the batch. Answers whether it gave the
-- key up, now or when something else made it enter its scope (is_key_settled); null if the run was not claimed.
create or replace function claim_entering_scope(p_id bigint, p_worker text, p_claim_id bigint) returns boolean
language plpgsql as $f$
declare
  v_lost boolean;
begin
  select r.unique_key is null and r.unique_scope is not null into v_lost from runs r where r.id = p_id;
  for v_try in 1 .. 2 loop
    begin
      update runs r set status = 'executing', locked_by = p_worker, claim_id = p_claim_id, turn = 0, throttled = false,
        timed_out = r.timed_out or r.status = 'awaiting_signal', awaits = resolved(r.awaits, r.inbox_seq),
        unique_key = case when not v_lost then r.unique_key end, unique_scope = case when not v_lost then r.unique_scope end
      where r.id = p_id and r.status in ('runnable', 'awaiting_signal');
      return case when found then v_lost end;
    exception
      when lock_not_available then
        return null;    -- a start that is not committed yet holds the key: this run waits for another claim
      when unique_violation then
        if v_try = 2 then
          raise;
        end if;
        v_lost := true;
    end;
  end loop;
end $f$;
