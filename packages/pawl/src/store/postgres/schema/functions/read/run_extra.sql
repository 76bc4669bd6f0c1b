-- pawl: inner
-- The member `extra` of a run_record: facts that few runs have, as a JSON object, or null.
--   originId  the first run of its chain of reruns
--   schedule  of a rerun: the idempotency key of the first run, if a schedule started it
--   paused    who paused it, its queue or its definition
--   rerunOf   the run that it repeats
--   rerunAs   the newest run that repeats it
--   trace     the trace context of its starter
--   tags, correlationKey, deadlineAt
-- Rides extras_reruns.
create or replace function run_extra(p_run runs) returns text language sql stable as $$
  select nullif(jsonb_strip_nulls(jsonb_build_object(
      'originId', x.origin_id::text,
      'schedule', case when x.origin_id is not null then schedule_of((p_run).idempotency_key, x.origin_id) end,
      'tags', case when (p_run).has_extras then tags_of((p_run).id) end,
      'correlationKey', x.correlation_key,
      'deadlineAt', iso(x.deadline_at),
      'trace', (p_run).trace,
      'rerunOf', x.rerun_of::text,
      'rerunAs', case when (p_run).status in ('done', 'failed', 'cancelled')
        then (select n.run_id::text from extras n where n.rerun_of = (p_run).id order by n.run_id desc limit 1) end))
    || case when p.pause is null then '{}' else jsonb_build_object('paused', p.pause) end, '{}')::text
  from (select pause_of(p_run) as pause) p, extras_of(p_run) x
$$;
