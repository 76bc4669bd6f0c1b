-- pawl: inner
-- What a worker must know of a claimed run that few runs have, as a JSON object (claimed_run.extra):
-- its tags, and the milliseconds until its deadline.
create or replace function claimed_extra(p_id bigint, p_tagged boolean, p_deadline_at timestamptz, p_now timestamptz) returns text
language plpgsql stable as $f$
begin
  return jsonb_strip_nulls(jsonb_build_object('tags', case when p_tagged then tags_of(p_id) end, 'deadlineMs', ms_until(p_deadline_at, p_now)))::text;
end $f$;
