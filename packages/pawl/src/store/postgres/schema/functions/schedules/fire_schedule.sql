-- pawl: inner
-- The idempotency key of the run of a tick: schedule/<name>/<time>. No other start may use it.
create or replace function schedule_key(p_name text, p_at timestamptz) returns text language sql stable as $$
  select 'schedule/' || p_name || '/' || to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- Starts a run for each of these ticks, with the key of the tick and p_suffix. Answers in their
-- order; `created` is false if the tick had its run before. Starts them in parts: each
-- tick copies the input, and one JSON value holds at most 256 MB.
create or replace function start_ticks(p_name text, p_run jsonb, p_ticks timestamptz[], p_suffix text)
returns table (at timestamptz, id bigint, created boolean) language plpgsql as $f$
#variable_conflict use_column
declare
  c_bytes constant int := 64 * 1024 * 1024;
  v_part int := greatest(least(c_bytes / octet_length(p_run::text), 1000), 1);
begin
  for i in 0 .. (cardinality(p_ticks) - 1) / v_part loop
    return query
      select p_ticks[i * v_part + s.position], s.id, s.created
      from new_runs((select jsonb_agg(p_run || jsonb_build_object('idempotency_key', schedule_key(p_name, u.at) || p_suffix) order by u.o)
        from unnest(p_ticks[i * v_part + 1 : (i + 1) * v_part]) with ordinality u(at, o)), null, null, null) s
      order by s.position;
  end loop;
end $f$;

-- One item of fire_schedules. Answers `gone` if it is not due any more, or another transaction has
-- the row locked: that one fires it.
create or replace function fire_schedule(p_name text, p_expected timestamptz, p_ticks timestamptz[], p_next timestamptz, p_now timestamptz)
returns table (verdict text, runs text, queue text, definition text, version int, cancelled text, names text, lost text, claimable text)
language plpgsql as $f$
#variable_conflict use_column
declare
  v_schedule schedules;
  v_status run_status;
  v_last bigint;
begin
  select s.* into v_schedule from schedules s
    where s.name = p_name and s.next_at = p_expected and s.due_at <= p_now
    for no key update skip locked;
  if not found then
    verdict := 'gone';
    return next;
    return;
  end if;
  queue := v_schedule.run ->> 'queue';
  definition := v_schedule.run ->> 'name';
  version := (v_schedule.run ->> 'version')::int;
  verdict := 'fired';
  if cardinality(p_ticks) = 1 and v_schedule.overlap <> 'allow' and v_schedule.last_run_id is not null then
    select r.status into v_status from runs r where r.id = v_schedule.last_run_id;
    if v_status not in ('done', 'failed', 'cancelled') then
      if v_schedule.overlap = 'skip' then
        verdict := 'skipped';
      else
        select c.cancelled, c.names, c.lost, c.claimable into cancelled, names, lost, claimable
        from cancel_run(v_schedule.last_run_id, 'the schedule ' || p_name || ' starts its next run', true) c;
      end if;
    end if;
  end if;
  if verdict = 'fired' and cardinality(p_ticks) > 0 then
    select jsonb_agg(jsonb_build_array(iso(t.at), t.id::text, t.created) order by t.at)::text, (array_agg(t.id order by t.at desc))[1]
    into runs, v_last from start_ticks(p_name, v_schedule.run, p_ticks, '') t;
  end if;
  update schedules s set next_at = p_next, due_at = p_next + s.offset_ms * interval '1 millisecond',
      last_at = case when v_last is null then s.last_at else p_ticks[cardinality(p_ticks)] end,
      last_run_id = coalesce(v_last, s.last_run_id),
      skipped_at = case when verdict = 'skipped' then p_ticks[1] else s.skipped_at end,
      failures = case when v_last is null then s.failures else 0 end,
      error = case when v_last is null then s.error end
    where s.name = p_name;
  return next;
end $f$;
