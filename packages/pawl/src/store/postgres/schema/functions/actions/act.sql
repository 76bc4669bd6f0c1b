-- pawl: call
-- Functions of the last release that have no parameter for the action log, with a line in it. The
-- other functions call note_action themselves.
--
-- The same as cancel; the line is written if it has cancelled anything.
create or replace function cancel_as(p_by text, p_id bigint, p_reason text, p_cascade boolean)
returns table (verdict text, status run_status, cancelled text, names text, lost text, claimable text)
language plpgsql as $f$
begin
  select c.* into verdict, status, cancelled, names, lost, claimable from cancel(p_id, p_reason, p_cascade) c;
  if cancelled is not null and cancelled <> '[]' then
    perform note_action(p_by, 'runs.cancel', p_id::text, jsonb_build_object('reason', p_reason,
      'cancelled', nullif(jsonb_array_length(cancelled::jsonb), 1)));
  end if;
  return next;
end $f$;

-- The same as set_held; the line is written if it changed anything.
create or replace function set_held_as(p_by text, p_held boolean) returns boolean language plpgsql as $f$
begin
  if not set_held(p_held) then
    return false;
  end if;
  perform note_action(p_by, case when p_held then 'database.hold' else 'database.release' end, null);
  return true;
end $f$;
