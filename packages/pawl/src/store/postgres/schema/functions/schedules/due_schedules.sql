-- pawl: call
-- Schedules that are due, as JSON, longest due first, with the time of the database. Without any:
-- milliseconds until the next one (null: there is none). p_skip leaves out the first ones, which
-- another process fires. In a held database none is due. An idle
-- process calls this once a second: it reads one entry of schedules_due, however many there are.
create or replace function due_schedules(p_limit int, p_skip int) returns table (now text, due_ms double precision, due text)
language plpgsql stable as $f$
declare
  v_now timestamptz := clock();
  v_first timestamptz;
begin
  now := iso(v_now);
  select s.due_at into v_first from schedules s where s.due_at is not null order by s.due_at limit 1;
  if v_first <= v_now and not is_held() then
    due := (
      select jsonb_agg(jsonb_build_object('name', s.name, 'cron', s.cron, 'everyMs', s.every_ms, 'timeZone', s.time_zone,
        'offsetMs', s.offset_ms, 'catchUp', s.catch_up, 'nextAt', s.next_at) order by s.due_at, s.name)
      from (select t.* from schedules t where t.due_at <= v_now order by t.due_at limit p_limit offset p_skip) s)::text;
  elsif v_first > v_now then
    due_ms := ms_until(v_first, v_now);
  end if;
  return next;
end $f$;
