-- pawl: inner
-- Sets a run aside that can be claimed; false if it cannot any more, or somebody has it locked. It is in line for its key no
-- longer: the repair lets the next in.
create or replace function set_one_aside(p_id bigint, p_code text, p_message text) returns boolean language plpgsql as $f$
declare
  v_key text;
begin
  select r.partition_key into v_key from runs r
    where r.id = p_id and r.hold = 0 and r.status in ('runnable', 'awaiting_signal') for no key update skip locked;
  if not found then
    return false;
  end if;
  update runs r set hold = r.hold | 8,
    error = jsonb_build_object('name', 'ClaimFailed', 'code', p_code, 'message', p_message)
  where r.id = p_id;
  if v_key is not null then
    perform leave_keys(array[v_key]);
  end if;
  return true;
end $f$;
