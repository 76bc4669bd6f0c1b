-- pawl: inner
-- The member `extra` of a claimed_run: facts that few runs have, as a JSON object. take_claims asks
-- only for runs that have one.
--   originId  the first run of its chain of reruns
--   schedule  the idempotency key of a run that a schedule started
--   tags, and the milliseconds until its deadline
create or replace function claim_extra(p_run runs, p_now timestamptz) returns text language sql stable as $$
  select jsonb_strip_nulls(jsonb_build_object('originId', (p_run).origin_id::text, 'schedule', schedule_of(p_run),
    'tags', case when (p_run).tagged then tags_of((p_run).id) end, 'deadlineMs', ms_until((p_run).deadline_at, p_now)))::text
$$;

-- The idempotency key of a run that a schedule started, or of the first run of its chain of reruns.
create or replace function schedule_of(p_run runs) returns text language sql stable as $$
  select case when starts_with(k.key, 'schedule/') then k.key end
  from (select case when (p_run).origin_id is null then (p_run).idempotency_key
    else (select o.idempotency_key from runs o where o.id = (p_run).origin_id) end as key) k
$$;
