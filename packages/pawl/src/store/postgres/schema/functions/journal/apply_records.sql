-- pawl: inner
-- Locks the runs in id order and writes the entries of record: completed steps in one statement,
-- the others one by one. An array may be null: then all its values are.
create or replace function apply_records(
  p_run_id bigint[], p_claim_id bigint[], p_name text[], p_op text[], p_seq int[], p_attempt int[],
  p_output text[], p_error text[], p_delay_ms bigint[], p_detail text[], p_inbox_seq int[], p_skip_locked boolean
) returns jsonb language plpgsql as $f$
declare
  v_now timestamptz := clock();
  v_guard text[];            -- by position: held, lost, or busy (another transaction has it locked)
  v_has_seq int[];           -- by position: the last seq of the run's inbox
  v_paused boolean[];        -- by position: the run must begin no further step
  v_has_pauses boolean := has_pauses();
  v_written int;
  v_others jsonb := '[]';
begin
  if p_skip_locked then
    select array_agg(case when r.id is null then case when e.id is null then 'lost' else 'busy' end
        when r.status = 'executing' and r.locked_by is not null and r.claim_id = u.claim_id then 'held' else 'lost' end order by u.o), array_agg(r.inbox_seq order by u.o),
      array_agg((r.hold & 16) <> 0 or v_has_pauses and is_paused(r.queue, r.name, r.version) order by u.o)
    into v_guard, v_has_seq, v_paused
    from (select i.id, i.claim_id, i.o from unnest(p_run_id, p_claim_id) with ordinality i(id, claim_id, o) order by i.id) u
    left join lateral (select t.id, t.claim_id, t.status, t.locked_by, t.inbox_seq, t.hold, t.queue, t.name, t.version from runs t where t.id = u.id
      limit 1 for no key update skip locked) r on true
    left join lateral (select t.id from runs t where t.id = u.id limit 1) e on true;
  else
    select array_agg(case when r.status = 'executing' and r.locked_by is not null and r.claim_id = u.claim_id then 'held' else 'lost' end order by u.o),
      array_agg(r.inbox_seq order by u.o),
      array_agg((r.hold & 16) <> 0 or v_has_pauses and is_paused(r.queue, r.name, r.version) order by u.o)
    into v_guard, v_has_seq, v_paused
    from (select i.id, i.claim_id, i.o from unnest(p_run_id, p_claim_id) with ordinality i(id, claim_id, o) order by i.id) u
    left join lateral (select t.id, t.claim_id, t.status, t.locked_by, t.inbox_seq, t.hold, t.queue, t.name, t.version from runs t where t.id = u.id
      limit 1 for no key update) r on true;
  end if;

  -- steps that completed at their first attempt have no row yet, so a plain insert will do
  if not p_skip_locked then
    insert into steps (run_id, name, kind, seq, attempt, output, error, started_at, completed_at)
    select u.run_id, u.name, u.op, u.seq, 0, u.output::jsonb, u.error::jsonb, v_now - u.delay_ms * interval '1 millisecond', v_now
    from unnest(p_run_id, p_name, p_op, p_seq, p_attempt, p_output, p_error, p_delay_ms, v_guard)
      u(run_id, name, op, seq, attempt, output, error, delay_ms, guard)
    where u.op in ('run', 'transaction') and u.attempt = 0 and u.guard = 'held';
    get diagnostics v_written = row_count;
  end if;
  if v_has_seq is distinct from p_inbox_seq or true = any (v_paused) then
    select coalesce(jsonb_agg(jsonb_build_object('position', u.o, 'verdict', 'fresh', 'inbox_seq', u.has_seq, 'paused', u.paused)), '[]')
    into v_others from unnest(v_has_seq, p_inbox_seq, p_op, v_guard, v_paused) with ordinality u(has_seq, inbox_seq, op, guard, paused, o)
    where u.op in ('run', 'transaction') and u.guard = 'held' and (u.has_seq <> coalesce(u.inbox_seq, 0) or u.paused);
  end if;
  if v_written = cardinality(p_run_id) then
    return v_others;
  end if;

  for i in 1 .. cardinality(p_run_id) loop
    if v_guard[i] <> 'held' then
      v_others := v_others || jsonb_build_object('position', i, 'verdict', case when v_guard[i] = 'busy' then 'busy' else 'stale' end);
    elsif p_op[i] not in ('run', 'transaction') then
      v_others := v_others || (jsonb_set(
        record_wait(p_run_id[i], p_name[i], p_op[i], p_seq[i], p_attempt[i], p_error[i]::jsonb, p_delay_ms[i], p_detail[i]::jsonb, v_now),
        '{position}', to_jsonb(i)) || jsonb_build_object('paused', v_paused[i]));
    elsif p_skip_locked or p_attempt[i] > 0 then
      -- tried before, or perhaps recorded by an earlier call whose reply was lost
      insert into steps (run_id, name, kind, seq, attempt, output, error, started_at, completed_at)
        values (p_run_id[i], p_name[i], p_op[i], p_seq[i], p_attempt[i], p_output[i]::jsonb, p_error[i]::jsonb,
          v_now - p_delay_ms[i] * interval '1 millisecond', v_now)
        on conflict (run_id, name) do update set kind = excluded.kind, seq = excluded.seq, attempt = excluded.attempt,
            output = excluded.output, error = excluded.error, due_at = null, completed_at = excluded.completed_at
          where steps.completed_at is null;
      if not found then
        v_others := v_others || (
          select jsonb_build_object('position', i, 'verdict', 'done', 'seq', s.seq, 'output', s.output, 'error', s.error, 'paused', v_paused[i])
          from steps s
          where s.run_id = p_run_id[i] and s.name = p_name[i]);
      end if;
    end if;
  end loop;
  return v_others;
end $f$;
