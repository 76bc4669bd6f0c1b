-- pawl: call
-- Sets a schedule; the last writer wins. The same content changes nothing, also not whether the
-- schedule is paused: answers false. A changed cron, interval or time zone moves the next tick to
-- p_next_at, which the caller computed from the time of get_schedules. p_paused null: as it is.
-- Raises if the run names an unknown rate limit. A change is a line of the action log (p_by, see
-- note_action; null for schedules that workers declare with their code).
create or replace function set_schedule(
  p_name text, p_run text, p_cron text, p_every_ms bigint, p_time_zone text, p_jitter_ms bigint, p_offset_ms bigint,
  p_overlap text, p_catch_up text, p_paused boolean, p_next_at timestamptz, p_by text
) returns boolean language plpgsql as $f$
declare
  v_now timestamptz := clock();
  v_run jsonb := p_run::jsonb;
  v_old schedules;
  v_next_at timestamptz := p_next_at;
  v_paused_at timestamptz;
begin
  perform require_read_committed();
  perform require_durable_commit();
  if v_run ->> 'rate_limit' is not null then
    perform require_limits(array[v_run ->> 'rate_limit'], array[(v_run ->> 'weight')::int]);
  end if;
  v_paused_at := case when p_paused then v_now end;
  insert into schedules (name, run, cron, every_ms, time_zone, jitter_ms, offset_ms, overlap, catch_up, given_paused,
      set_at, paused_at, next_at, due_at)
    values (p_name, v_run, p_cron, p_every_ms, p_time_zone, p_jitter_ms, p_offset_ms, p_overlap, p_catch_up, p_paused,
      v_now, v_paused_at, v_next_at, case when v_paused_at is null then v_next_at + p_offset_ms * interval '1 millisecond' end)
    on conflict (name) do nothing;
  if found then
    perform note_action(p_by, 'schedules.set', p_name);
    return true;
  end if;
  select s.* into v_old from schedules s where s.name = p_name for update;
  if not found then
    raise exception 'the schedule was removed meanwhile: set it again' using errcode = 'serialization_failure';
  end if;
  if (v_old.run, v_old.cron, v_old.every_ms, v_old.time_zone, v_old.jitter_ms, v_old.overlap, v_old.catch_up, v_old.given_paused)
      is not distinct from (v_run, p_cron, p_every_ms, p_time_zone, p_jitter_ms, p_overlap, p_catch_up, p_paused) then
    return false;
  end if;
  if (v_old.cron, v_old.every_ms, v_old.time_zone) is not distinct from (p_cron, p_every_ms, p_time_zone) then
    v_next_at := v_old.next_at;
  end if;
  v_paused_at := case when p_paused is null then v_old.paused_at when p_paused then coalesce(v_old.paused_at, v_now) end;
  update schedules s set run = v_run, cron = p_cron, every_ms = p_every_ms, time_zone = p_time_zone, jitter_ms = p_jitter_ms,
      offset_ms = p_offset_ms, overlap = p_overlap, catch_up = p_catch_up, given_paused = p_paused, set_at = v_now,
      paused_at = v_paused_at, next_at = v_next_at,
      due_at = case when v_paused_at is null then v_next_at + p_offset_ms * interval '1 millisecond' end
    where s.name = p_name;
  perform note_action(p_by, 'schedules.set', p_name);
  return true;
end $f$;

-- Pauses a schedule or resumes it. Answers whether there is one. The next tick stays as it is: after
-- a resume, catch_up decides about the ticks that passed meanwhile.
create or replace function pause_schedule(p_name text, p_paused boolean, p_by text) returns boolean language plpgsql as $f$
declare
  v_now timestamptz := clock();
begin
  perform require_durable_commit();
  update schedules s set paused_at = case when p_paused then coalesce(s.paused_at, v_now) end,
      due_at = case when not p_paused then s.next_at + s.offset_ms * interval '1 millisecond' end
    where s.name = p_name;
  if not found then
    return false;
  end if;
  perform note_action(p_by, case when p_paused then 'schedules.pause' else 'schedules.resume' end, p_name);
  return true;
end $f$;

-- Removes a schedule. Answers whether there was one. Its runs go on.
create or replace function remove_schedule(p_name text, p_by text) returns boolean language plpgsql as $f$
begin
  perform require_durable_commit();
  delete from schedules s where s.name = p_name;
  if not found then
    return false;
  end if;
  perform note_action(p_by, 'schedules.remove', p_name);
  return true;
end $f$;
