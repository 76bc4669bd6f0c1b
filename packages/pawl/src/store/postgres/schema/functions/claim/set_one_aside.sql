-- pawl: inner
-- Sets one claimable run aside. Answers false if it is no longer claimable, or if another
-- transaction has locked it. The run leaves the line for its key, and the repair lets the next run
-- in.
create or replace function set_one_aside(p_id bigint, p_code text, p_message text) returns boolean language plpgsql as $f$
declare
  v_key text;
  v_slot_key text;
begin
  select r.partition_key, r.concurrency into v_key, v_slot_key from runs r
    where r.id = p_id and r.hold = 0 and r.status in ('runnable', 'awaiting_signal') for no key update skip locked;
  if not found then
    return false;
  end if;
  update runs r set hold = r.hold | 8,
    error = jsonb_build_object('name', 'ClaimFailed', 'code', p_code, 'message', p_message)
  where r.id = p_id;
  if v_key is not null then
    perform note_keys_to_repair(array[v_key]);
  end if;
  if v_slot_key is not null then
    perform note_slots_to_repair(leave_slots(array[p_id]));
  end if;
  return true;
end $f$;
