-- pawl: call
-- Starts the run of a schedule now, whatever overlap says and also if it is paused. Its key has the
-- current time and p_suffix, which no tick has. The next tick stays as it is. No row: there is no
-- such schedule. Writes a line of the action log (p_by, see note_action). Locks the schedule, then
-- keys.
create or replace function trigger_schedule(p_name text, p_suffix text, p_by text)
returns table (id bigint, created boolean, at text, queue text, definition text, version int) language plpgsql as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
  v_run jsonb;
begin
  perform require_read_committed();
  perform require_durable_commit();
  select s.run into v_run from schedules s where s.name = p_name for no key update;
  if not found then
    return;
  end if;
  select t.id, t.created, iso(v_now) into strict id, created, at
  from start_ticks(p_name, v_run, array[v_now], '/' || p_suffix) t;
  queue := v_run ->> 'queue';
  definition := v_run ->> 'name';
  version := (v_run ->> 'version')::int;
  update schedules s set last_at = v_now, last_run_id = trigger_schedule.id where s.name = p_name;
  perform note_action(p_by, 'schedules.trigger', p_name, jsonb_build_object('runId', id::text));
  return next;
end $f$;

-- Starts the runs of these ticks of a schedule, all or none. A tick that had its run before gets no
-- second one. No row: there is no such schedule. p_from and p_to are the range of these ticks, for
-- the action log.
create or replace function backfill_schedule(p_name text, p_ticks text, p_from text, p_to text, p_by text)
returns table (at text, id bigint, created boolean, queue text, definition text, version int) language plpgsql as $f$
#variable_conflict use_column
declare
  v_run jsonb;
begin
  perform require_read_committed();
  perform require_durable_commit();
  select s.run into v_run from schedules s where s.name = p_name;
  if not found then
    return;
  end if;
  return query
    select iso(t.at), t.id, t.created, v_run ->> 'queue', v_run ->> 'name', (v_run ->> 'version')::int
    from start_ticks(p_name, v_run, array(
      select u.at::timestamptz from jsonb_array_elements_text(p_ticks::jsonb) u(at)), '') t;
  perform note_action(p_by, 'schedules.backfill', p_name, jsonb_build_object('from', p_from, 'to', p_to,
    'runs', jsonb_array_length(p_ticks::jsonb)));
end $f$;
