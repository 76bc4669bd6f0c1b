-- pawl: call
-- Repeats terminal runs: each becomes a new run that begins where the old one failed, or at p_from.
-- The old run stays as it is. Answers one row per position: the verdict of plan_reruns, and of a
-- new run its id, status, name, version and queue. For unknown_step, `steps` has up to 100 steps of
-- the journal in order, as JSON; for waited_for_children and signals_lost, the step as a list.
-- The new run keeps name, version (or p_version), queue, priority, partition key, rate limit,
-- concurrency limit, retention, correlation key, trace and the length of its deadline. It has no
-- parent: that has got its answer from the old run. It has no unique key and no idempotency key,
-- which belong to the old run. origin_id is the first run of the chain.
--   job       its input, or p_input
--   machine   step and state, or p_from and p_state; at the same step also what it had awaited
--             (keep_awaited) and its children, which stay those of the old run (awaits.of)
--   workflow  its input and a copy of the completed journal entries (see plan_reruns): outcomes of
--             steps, sleeps, events and invoked runs, with their seq, so that the body gets them in
--             the same order. Pending entries are not copied: such a step begins anew.
-- Writes a line of the action log for each new run (p_by, see note_action).
-- Locks the old runs FOR KEY SHARE in id order, so that no sweep deletes one meanwhile. That waits
-- for no transition: an old run that is not terminal yet is `active`.
create or replace function rerun(p_id bigint[], p_from text, p_input text, p_state text, p_version int, p_by text)
returns table ("position" int, verdict text, id bigint, status run_status, name text, version int, queue text, steps text)
language plpgsql as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
  v_ceiling interval;
  v_verdict text[];
  v_fresh boolean[];
  v_same boolean[];
  v_cut int[];
  v_failed int[];
  v_new bigint[];
begin
  perform require_durable_commit();
  perform 1 from (select distinct u.id from unnest(p_id) u(id) order by u.id) v
    cross join lateral (select 1 from runs r where r.id = v.id limit 1 for key share) l;
  select array_agg(p.verdict order by p.position), array_agg(p.is_fresh order by p.position), array_agg(p.is_same order by p.position),
    array_agg(p.cut order by p.position), array_agg(p.failed order by p.position)
  into v_verdict, v_fresh, v_same, v_cut, v_failed
  from plan_reruns(p_id, p_from, p_input is not null, p_state is not null) p;
  v_new := array(select case when u.verdict = 'rerun' then nextval('run_ids') << 6 end from unnest(v_verdict) with ordinality u(verdict, o) order by u.o);
  select s.retention_ceiling into strict v_ceiling from settings s;

  insert into runs (id, status, hold, priority, version, timed_out, inbox_seq, shown, eligible_at, inserted_at, retention, queue, kind,
    name, step, awaits, partition_key, rate_limit, weight, input, state, trace,
    origin_id, rerun_of, deadline_at, correlation_key, concurrency)
  select m.new_id,
    case when m.is_same and r.awaits ->> 'was' = 'awaiting_signal' then 'awaiting_signal'::run_status else 'runnable'::run_status end,
    -- its definition was never registered: it waits for that like a start by name
    case when r.kind is null then 2::smallint else 0::smallint end,
    case when r.kind is not null then r.priority end, coalesce(p_version, r.version),
    m.is_same and r.timed_out, case when m.is_same and r.awaits ? 'kept' then r.inbox_seq else 0 end, case when m.is_same then r.shown end,
    case when m.is_same and r.awaits ->> 'was' = 'awaiting_signal'
      then case when r.eligible_at = 'infinity' then 'infinity' else v_now + (r.eligible_at - r.completed_at) end
      else v_now end,
    v_now, case when r.kind is not null then least(r.retention, v_ceiling) end, case when r.kind is not null then r.queue end, r.kind, r.name,
    case when r.kind = 'machine' and not m.is_fresh then coalesce(p_from, r.step) end,
    case when m.is_same and r.awaits is not null then r.awaits - 'kept' - 'was'
      || case when r.awaits ? 'children' and not r.awaits ? 'of' then jsonb_build_object('of', jsonb_build_array(r.id::text, r.spawn)) else '{}' end end,
    r.partition_key, r.rate_limit, r.weight, coalesce(p_input::jsonb, r.input),
    case when r.kind = 'machine' then coalesce(p_state::jsonb, case when not m.is_fresh then r.state end) end,
    r.trace, coalesce(r.origin_id, r.id), r.id, v_now + (r.deadline_at - r.inserted_at), r.correlation_key, r.concurrency
  from unnest(p_id, v_new, v_fresh, v_same) m(id, new_id, is_fresh, is_same)
  cross join lateral (select t.* from runs t where t.id = m.id limit 1) r
  where m.new_id is not null;

  insert into steps (run_id, name, kind, seq, attempt, child_id, due_at, output, error, started_at, completed_at)
  select m.new_id, s.name, s.kind, s.seq, s.attempt, s.child_id, s.due_at, s.output, s.error, s.started_at, s.completed_at
  from unnest(p_id, v_new, v_fresh, v_cut, v_failed) m(id, new_id, is_fresh, cut, failed)
  cross join lateral (select t.* from steps t where t.run_id = m.id and t.completed_at is not null
    and (m.cut is null or t.seq < m.cut) and (m.failed is null or t.error is null or t.seq < m.failed)) s
  where m.new_id is not null and not m.is_fresh;

  insert into signals (run_id, seq, name, payload, inserted_at)
  select m.new_id, (k.value ->> 0)::int, k.value ->> 1, k.value -> 2, (k.value ->> 3)::timestamptz
  from unnest(p_id, v_new, v_same) m(id, new_id, is_same)
  cross join lateral (select t.awaits from runs t where t.id = m.id limit 1) r
  cross join lateral jsonb_array_elements(r.awaits -> 'kept') k
  where m.new_id is not null and m.is_same;

  if p_by is not null then
    perform note_action(p_by, 'runs.rerun', u.id::text, jsonb_build_object('runId', u.new_id::text, 'from', p_from, 'version', p_version,
        'input', nullif(p_input is not null, false), 'state', nullif(p_state is not null, false)))
      from unnest(p_id, v_new) u(id, new_id) where u.new_id is not null;
  end if;

  return query
    select u.o::int, u.verdict, u.new_id, r.status, coalesce(r.name, o.name), r.version, coalesce(r.queue, 'default'),
      case when u.verdict = 'unknown_step' then (select jsonb_agg(s.name)::text from (select t.name from steps t where t.run_id = u.id
          order by t.seq nulls last, t.started_at, t.name limit 100) s)
        when u.verdict in ('waited_for_children', 'signals_lost') then jsonb_build_array(o.step)::text end
    from unnest(p_id, v_verdict, v_new) with ordinality u(id, verdict, new_id, o)
    left join lateral (select t.name, t.step from runs t where t.id = u.id limit 1) o on true
    left join lateral (select t.status, t.name, t.version, t.queue from runs t where t.id = u.new_id limit 1) r on true
    order by u.o;
end $f$;
