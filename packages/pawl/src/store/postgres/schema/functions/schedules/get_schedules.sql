-- pawl: call
-- Schedules as JSON, with the time of the database: the one of this name, or (null) a page in order
-- of names after p_after, without inputs, which may be large. Includes the last run, and whether a live worker serves the definition.
create or replace function get_schedules(p_name text, p_after text, p_limit int) returns table (now text, schedules text)
language plpgsql stable as $f$
declare
  v_now timestamptz := clock();
  v_alive timestamptz := clock_timestamp();
begin
  now := iso(v_now);
  schedules := (
    select jsonb_agg(jsonb_build_object('name', s.name, 'run', case when p_name is null then s.run - 'input' else s.run end, 'cron', s.cron, 'everyMs', s.every_ms, 'timeZone', s.time_zone,
        'jitterMs', s.jitter_ms, 'offsetMs', s.offset_ms, 'overlap', s.overlap, 'catchUp', s.catch_up, 'setAt', s.set_at,
        'pausedAt', s.paused_at, 'nextAt', s.next_at, 'lateMs', ms_until(v_now, s.due_at), 'lastAt', s.last_at,
        'lastRun', case when r.id is not null then jsonb_build_object('runId', r.id::text, 'phase', r.status, 'error', r.error) end,
        'lastRunId', s.last_run_id::text, 'skippedAt', s.skipped_at, 'failures', s.failures, 'error', s.error,
        'isServed', exists (select 1 from workers w where w.seen_at + w.lease > v_alive and exists (
          select 1 from unnest(w.serves) d(served)
          where d.served = (s.run ->> 'name') || '@' || (s.run ->> 'version')
            or (s.run ->> 'version' is null and starts_with(d.served, (s.run ->> 'name') || '@')))))
      order by s.name)
    from (
      select t.* from schedules t
      where t.name = p_name or (p_name is null and t.name > coalesce(p_after, ''))
      order by t.name limit p_limit) s
    left join lateral (select t.id, t.status, t.error from runs t where t.id = s.last_run_id limit 1) r on true)::text;
  return next;
end $f$;
