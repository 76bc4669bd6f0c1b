-- pawl: inner
-- The members of a run that only few runs have, as a JSON object (run_record.extra).
create or replace function record_extra(p_id bigint, p_tagged boolean, p_deadline_at timestamptz, p_correlation_key text, p_pause jsonb)
returns text language plpgsql stable as $f$
begin
  return (jsonb_strip_nulls(jsonb_build_object('tags', case when p_tagged then tags_of(p_id) end,
    'deadlineAt', iso(p_deadline_at), 'correlationKey', p_correlation_key))
    || case when p_pause is not null then jsonb_build_object('paused', p_pause) else '{}' end)::text;
end $f$;
