-- pawl: inner
-- rerun_all for one run, with an idempotency key for the new run. It looks for the run that has the
-- key, and rides runs_idempotency. Two callers with one key: the second waits for the first, finds
-- the key taken, undoes its own rerun and looks again.
create or replace function rerun_keyed(
  p_id bigint[], p_from text, p_input text, p_state text, p_version int, p_key text,
  out verdict text[], out new_id bigint[], out created boolean
) language plpgsql as $f$
declare
  v_name text := (select r.name from runs r where r.id = p_id[1] and r.id < first_message_id());
  v_owner record;
begin
  for i in 1 .. 2 loop
    select r.id, (extras_of(r)).rerun_of into v_owner from runs r where r.idempotency_key = p_key and r.name = v_name;
    if found then
      created := false;
      new_id := array[v_owner.id];
      verdict := array[case when v_owner.rerun_of = p_id[1] then 'rerun' else 'key_conflict' end];
      return;
    end if;
    begin
      select a.verdict, a.new_id, true into verdict, new_id, created from rerun_all(p_id, p_from, p_input, p_state, p_version) a;
      update runs r set idempotency_key = p_key where r.id = new_id[1];
      return;
    exception when unique_violation then
      if i = 2 then
        raise;
      end if;
    end;
  end loop;
end $f$;
