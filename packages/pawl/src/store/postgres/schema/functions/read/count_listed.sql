-- pawl: call; custom plans
-- How many runs such a listing would show on all its pages. Reads every one of them: for people who look, not for loops.
create or replace function count_listed(
  p_name text, p_version int, p_status run_status[], p_queue text, p_kind text, p_error text, p_parent_id bigint,
  p_since timestamptz, p_until timestamptz, p_input text
) returns bigint language plpgsql stable as $f$
declare
  v_input jsonb := p_input::jsonb;
begin
  return (
    select count(*) from runs r
    where r.id < first_message_id() and (p_name is null or r.name = p_name) and (p_parent_id is null or r.parent_id = p_parent_id)
      and (p_error is null or (r.status = 'failed' and (coalesce(r.error ->> 'code', r.error ->> 'name') collate "C") = p_error))
      and (p_version is null or r.version = p_version)
      and (p_status is null or r.status = any (p_status))
      and (p_queue is null or r.queue = p_queue)
      and (p_kind is null or r.kind = p_kind)
      and (p_since is null or r.inserted_at >= p_since)
      and (p_until is null or r.inserted_at < p_until)
      and (v_input is null or r.input @> v_input));
end $f$;
