-- pawl: inner
-- The work of rerun and of bulk operations: answers the verdict and the new run by position, see
-- rerun. It locks nothing: a terminal run changes no more, and one statement with one snapshot copies
-- run, journal and signals, so that no sweep comes between.
create or replace function rerun_all(
  p_id bigint[], p_from text, p_input text, p_state text, p_version int, out verdict text[], out new_id bigint[]
) language plpgsql as $f$
declare
  v_now timestamptz := clock();
  v_ceiling interval;
  v_fresh boolean[];
  v_same boolean[];
  v_cut int[];
  v_failed int[];
  v_made bigint[];
begin
  select array_agg(p.verdict order by p.position), array_agg(p.is_fresh order by p.position), array_agg(p.is_same order by p.position),
    array_agg(p.cut order by p.position), array_agg(p.failed order by p.position),
    array_agg(case when p.verdict = 'rerun' then nextval('run_ids') << 6 end order by p.position)
  into verdict, v_fresh, v_same, v_cut, v_failed, new_id
  from plan_reruns(p_id, p_from, p_input is not null, p_state is not null) p;
  select s.retention_ceiling into strict v_ceiling from settings s;

  with made as (
    insert into runs (id, status, hold, priority, version, timed_out, inbox_seq, shown, eligible_at, inserted_at, retention, queue, kind,
      name, step, awaits, partition_key, rate_limit, weight, input, state, trace,
      concurrency, has_extras)
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
      r.trace, r.concurrency, true
    from unnest(p_id, new_id, v_fresh, v_same) m(id, new_id, is_fresh, is_same)
    cross join lateral (select t.* from runs t where t.id = m.id limit 1) r
    where m.new_id is not null
    returning runs.id
  ), copied as (
    insert into steps (run_id, name, kind, seq, attempt, child_id, due_at, output, error, started_at, completed_at)
    select m.new_id, s.name, s.kind, s.seq, s.attempt, s.child_id, s.due_at, s.output, s.error, s.started_at, s.completed_at
    from unnest(p_id, new_id, v_fresh, v_cut, v_failed) m(id, new_id, is_fresh, cut, failed)
    cross join lateral (select t.* from steps t where t.run_id = m.id and t.completed_at is not null
      and (m.cut is null or t.seq < m.cut) and (m.failed is null or t.error is null or t.seq < m.failed)) s
    where m.new_id is not null and not m.is_fresh
  ), linked as (
    insert into extras (run_id, name, origin_id, rerun_of, timeout, deadline_at, correlation_key)
    select m.new_id, r.name, coalesce(x.origin_id, r.id), r.id, x.timeout, v_now + x.timeout, x.correlation_key
    from unnest(p_id, new_id) m(id, new_id)
    cross join lateral (select t.id, t.name, t.inserted_at, t.has_extras from runs t where t.id = m.id limit 1) r
    left join lateral (select t.* from extras t where t.run_id = r.id and r.has_extras limit 1) x on true
    where m.new_id is not null
  ), labelled as (
    insert into tags (run_id, name, value)
    select m.new_id, t.name, t.value from unnest(p_id, new_id) m(id, new_id)
    cross join lateral (select r.id from runs r where r.id = m.id and r.has_extras is true limit 1) r
    cross join lateral (select u.name, u.value from tags u where u.run_id = r.id) t
    where m.new_id is not null
  ), kept as (
    insert into signals (run_id, seq, name, payload, inserted_at)
    select m.new_id, (k.value ->> 0)::int, k.value ->> 1, k.value -> 2, (k.value ->> 3)::timestamptz
    from unnest(p_id, new_id, v_same) m(id, new_id, is_same)
    cross join lateral (select t.awaits from runs t where t.id = m.id limit 1) r
    cross join lateral jsonb_array_elements(r.awaits -> 'kept') k
    where m.new_id is not null and m.is_same
  )
  select array_agg(m.id) into v_made from made m;
  -- a sweep may have deleted some since they were planned
  if cardinality(array_remove(new_id, null)) > coalesce(cardinality(v_made), 0) then
    select array_agg(case when u.new_id = any (v_made) or u.new_id is null then u.verdict else 'not_found' end order by u.o),
      array_agg(case when u.new_id = any (v_made) then u.new_id end order by u.o)
    into verdict, new_id from unnest(verdict, new_id) with ordinality u(verdict, new_id, o);
  end if;
end $f$;
