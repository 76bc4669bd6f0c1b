-- pawl: call; custom plans
-- Counts the runs that such a list would show on all its pages. Reads every one of them: for
-- people, not for loops.
create or replace function count_listed(
  p_name text, p_version int, p_status run_status[], p_queue text, p_kind text, p_error text, p_parent_id bigint,
  p_since timestamptz, p_until timestamptz, p_input text, p_more jsonb
) returns bigint language plpgsql stable as $f$
declare
  v_input jsonb := p_input::jsonb;
  v_own text[] := own_prefixes(p_more, 'names');
  v_queues text[] := own_prefixes(p_more, 'queues');
begin
  if is_labelled(p_more) then
    return cardinality(list_labelled(p_name, p_version, p_status, p_queue, p_kind, p_error, p_parent_id, p_since, p_until, null, v_input,
      null, p_more));
  end if;
  return (
    select count(*) from runs r
    where r.id < first_message_id() and (p_more is null or not p_more ? 'paused' or (r.hold & 16) <> 0) and (p_parent_id is null or r.parent_id = p_parent_id)
      and (p_error is null or (r.status = 'failed' and (coalesce(r.error ->> 'code', r.error ->> 'name') collate "C") = p_error))
      and is_listed(r, p_name, p_version, p_status, p_queue, p_kind, p_since, p_until, v_input, null, null) and is_own(r.name, r.queue, v_own, v_queues));
end $f$;
