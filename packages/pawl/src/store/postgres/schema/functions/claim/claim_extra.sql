-- pawl: inner
-- The member `extra` of a claimed_run: facts that few runs have, as a JSON object. take_claims asks
-- only for runs that may have one. A debounce key ends here: the run begins, and the next start of
-- the key makes a new one.
--   originId  the first run of its chain of reruns
--   schedule  the idempotency key of a run that a schedule started
--   tags, and the milliseconds until its deadline
create or replace function claim_extra(p_run runs, p_now timestamptz) returns text language plpgsql as $f$
declare
  v_extras extras := extras_of(p_run);
begin
  if v_extras.debounce_key is not null then
    update extras x set debounce_key = null where x.run_id = p_run.id;
  end if;
  return nullif(jsonb_strip_nulls(jsonb_build_object('originId', v_extras.origin_id::text,
    'schedule', schedule_of(p_run.idempotency_key, v_extras.origin_id),
    'tags', case when p_run.has_extras then tags_of(p_run.id) end, 'deadlineMs', ms_until(v_extras.deadline_at, p_now))), '{}')::text;
end $f$;

-- The idempotency key of a run that a schedule started, or of the first run of its chain of reruns.
create or replace function schedule_of(p_idempotency_key text, p_origin_id bigint) returns text language sql stable as $$
  select case when starts_with(k.key, 'schedule/') then k.key end
  from (select case when p_origin_id is null then p_idempotency_key
    else (select o.idempotency_key from runs o where o.id = p_origin_id) end as key) k
$$;
