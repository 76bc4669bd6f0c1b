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
-- With p_key, for one run, the new run gets this idempotency key. If a rerun of the same run has it
-- already, that one is the answer, with created = false, whatever the other arguments are. If another
-- run has it, the verdict is key_conflict, and id is that run.
-- Writes a line of the action log for each new run (p_by, see note_action).
-- Waits for no transition: an old run that is not terminal yet is `active`.
create or replace function rerun(p_id bigint[], p_from text, p_input text, p_state text, p_version int, p_by text, p_key text)
returns table ("position" int, verdict text, id bigint, status run_status, name text, version int, queue text, steps text, created boolean)
language plpgsql as $f$
#variable_conflict use_column
declare
  v_verdict text[];
  v_new bigint[];
  v_created boolean := true;
begin
  perform require_durable_commit();
  if p_key is not null then
    select k.verdict, k.new_id, k.created into v_verdict, v_new, v_created from rerun_keyed(p_id, p_from, p_input, p_state, p_version, p_key) k;
  else
    select a.verdict, a.new_id into v_verdict, v_new from rerun_all(p_id, p_from, p_input, p_state, p_version) a;
  end if;
  if p_by is not null and v_created then
    perform note_action(p_by, 'runs.rerun', u.id::text, jsonb_build_object('runId', u.new_id::text, 'from', p_from, 'version', p_version,
        'input', nullif(p_input is not null, false), 'state', nullif(p_state is not null, false)))
      from unnest(p_id, v_new) u(id, new_id) where u.new_id is not null;
  end if;

  return query
    select u.o::int, u.verdict, u.new_id, r.status, coalesce(r.name, o.name), r.version, coalesce(r.queue, 'default'),
      case when u.verdict = 'unknown_step' then (select jsonb_agg(s.name)::text from (select t.name from steps t where t.run_id = u.id
          order by t.seq nulls last, t.started_at, t.name limit 100) s)
        when u.verdict in ('waited_for_children', 'signals_lost') then jsonb_build_array(o.step)::text end,
      u.verdict = 'rerun' and v_created
    from unnest(p_id, v_verdict, v_new) with ordinality u(id, verdict, new_id, o)
    left join lateral (select t.name, t.step from runs t where t.id = u.id limit 1) o on true
    left join lateral (select t.status, t.name, t.version, t.queue from runs t where t.id = u.new_id limit 1) r on true
    order by u.o;
end $f$;
