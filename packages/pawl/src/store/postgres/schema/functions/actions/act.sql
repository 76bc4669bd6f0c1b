-- pawl: call
-- Writes lines of the action log for actions that have no function of their own, such as holding the
-- database. Functions of single actions call note_action.
create or replace function act(p_by text, p_action text, p_target text, p_detail text) returns void language plpgsql as $f$
begin
  perform require_durable_commit();
  perform note_action(p_by, p_action, p_target, p_detail::jsonb);
end $f$;

-- The same as cancel, with a line in the action log if it has cancelled anything.
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
