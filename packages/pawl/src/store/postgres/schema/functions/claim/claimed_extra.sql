-- pawl: inner
-- The facts about a claimed run that few runs have, as a JSON object (claimed_run.extra): its tags,
-- the milliseconds until its deadline, and the key of the schedule that started it.
create or replace function claimed_extra(p_id bigint, p_tagged boolean, p_deadline_at timestamptz, p_idempotency_key text, p_now timestamptz)
returns text language plpgsql stable as $f$
begin
  return jsonb_strip_nulls(jsonb_build_object('tags', case when p_tagged then tags_of(p_id) end, 'deadlineMs', ms_until(p_deadline_at, p_now),
    'schedule', case when starts_with(p_idempotency_key, 'schedule/') then p_idempotency_key end))::text;
end $f$;
