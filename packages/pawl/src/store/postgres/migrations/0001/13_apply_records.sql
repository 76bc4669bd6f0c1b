-- The entries of record, after the runs are locked: completed steps in one statement, the others one by one. An array may be
-- null: then all its values are.
create function apply_records(
  p_shard smallint, p_run_id bigint[], p_claim_id bigint[], p_name text[], p_op text[], p_seq int[], p_attempt int[],
  p_output text[], p_error text[], p_delay_ms bigint[], p_detail text[], p_inbox_seq int[], p_skip_locked boolean
) returns jsonb language plpgsql as $f$
declare
  v_now timestamptz := now();
  v_locked bigint[];         -- null: all
  v_asked int;
  v_written int;
  v_others jsonb;
begin
  if p_skip_locked then
    v_locked := array(
      select l.id from (select distinct u.id from unnest(p_run_id) u(id) order by u.id) v
      cross join lateral (select r.id from runs r where r.shard = p_shard and r.id = v.id limit 1 for no key update skip locked) l);
  else
    perform 1 from (select distinct u.id from unnest(p_run_id) u(id) order by u.id) v
      cross join lateral (select 1 from runs r where r.shard = p_shard and r.id = v.id limit 1 for no key update) l;
  end if;

  with item as materialized (
    select u.*, r.inbox_seq as has_seq
    from unnest(p_run_id, p_claim_id, p_name, p_op, p_seq, p_attempt, p_output, p_error, p_delay_ms, p_inbox_seq) with ordinality
      u(run_id, claim_id, name, op, seq, attempt, output, error, delay_ms, inbox_seq, o)
    cross join lateral (select t.inbox_seq from runs t where t.shard = p_shard and t.id = u.run_id and t.claim_id = u.claim_id
      and (t.status = 'executing') is true and (v_locked is null or t.id = any (v_locked)) limit 1) r
    where u.op in ('run', 'transaction')
  ), written as (
    insert into steps (shard, run_id, name, kind, seq, attempt, output, error, started_at, completed_at)
    select p_shard, i.run_id, i.name, i.op, i.seq, i.attempt, i.output::jsonb, i.error::jsonb,
      v_now - i.delay_ms * interval '1 millisecond', v_now
    from item i
    on conflict (shard, run_id, name) do update set kind = excluded.kind, seq = excluded.seq, attempt = excluded.attempt,
        output = excluded.output, error = excluded.error, due_at = null, completed_at = excluded.completed_at
      where steps.completed_at is null
    returning 1)
  select (select count(*) from written),
    coalesce(jsonb_agg(jsonb_build_object('position', i.o, 'verdict', 'fresh', 'inbox_seq', i.has_seq))
      filter (where i.has_seq <> coalesce(i.inbox_seq, 0)), '[]')
  into v_written, v_others from item i;
  if v_written = cardinality(p_run_id) then
    return v_others;
  end if;

  for i in 1 .. cardinality(p_run_id) loop
    perform 1 from runs r where r.shard = p_shard and r.id = p_run_id[i] and r.claim_id = p_claim_id[i] and r.status = 'executing'
      and (v_locked is null or r.id = any (v_locked));
    if not found then
      v_others := v_others || jsonb_build_object('position', i, 'verdict',
        case when p_run_id[i] <> all (v_locked) then 'busy' else 'stale' end);
    elsif p_op[i] in ('run', 'transaction') then
      v_others := v_others || coalesce((
        select jsonb_build_object('position', i, 'verdict', 'done', 'seq', s.seq, 'output', s.output, 'error', s.error) from steps s
        where s.shard = p_shard and s.run_id = p_run_id[i] and s.name = p_name[i] and s.completed_at <> v_now), '[]');
    else
      v_others := v_others || jsonb_set(
        record_wait(p_shard, p_run_id[i], p_name[i], p_op[i], p_seq[i], p_attempt[i], p_error[i]::jsonb, p_delay_ms[i], p_detail[i]::jsonb, v_now),
        '{position}', to_jsonb(i));
    end if;
  end loop;
  return v_others;
end $f$;

-- One entry of record that waits: for a retry, a time, a signal or a child. The caller has locked the run and checked the guard.
create function record_wait(
  p_shard smallint, p_run_id bigint, p_name text, p_op text, p_seq int, p_attempt int, p_error jsonb, p_delay_ms bigint, p_detail jsonb,
  p_now timestamptz
) returns jsonb language plpgsql as $f$
declare
  v_step steps;
  v_due_at timestamptz := coalesce((p_detail ->> 'at')::timestamptz, p_now + p_delay_ms * interval '1 millisecond');
  v_inbox_seq int;
  v_child_id bigint;
  v_is_taken boolean := false;
  v_refusal text;
  v_refusal_message text;
  v_signal record;
begin
  select s.* into v_step from steps s where s.shard = p_shard and s.run_id = p_run_id and s.name = p_name;
  if v_step.completed_at is not null then
    return jsonb_build_object('verdict', 'done', 'seq', v_step.seq, 'output', v_step.output, 'error', v_step.error);
  end if;
  if p_op = 'retry' then
    insert into steps (shard, run_id, name, kind, attempt, error, due_at, started_at)
      values (p_shard, p_run_id, p_name, p_detail ->> 'kind', p_attempt, p_error, v_due_at, p_now)
      on conflict (shard, run_id, name) do update set attempt = excluded.attempt, error = excluded.error, due_at = excluded.due_at
      returning * into v_step;
  elsif v_step.run_id is null and p_op <> 'due' then
    if p_op = 'invoke' then
      begin
        select n.id, not n.created into v_child_id, v_is_taken
          from new_runs(p_shard, p_detail -> 'children', array[p_run_id], array[null::int], array[null::int]) n;
      exception when others then
        -- recorded like any other end: on replay it would perhaps not be refused
        if sqlstate = '55P03' or not is_row_fault(sqlstate) then
          raise;
        end if;
        v_refusal := case when sqlstate = 'PW409' then 'KeyConflict' else 'InvalidOption' end;
        v_refusal_message := sqlerrm;
      end;
    end if;
    insert into steps (shard, run_id, name, kind, child_id, due_at, started_at)
      values (p_shard, p_run_id, p_name, p_op, v_child_id, v_due_at, p_now)
      returning * into v_step;
    if v_refusal is not null then
      v_step.error := jsonb_build_object('name', v_refusal, 'code', v_refusal, 'message', v_refusal_message);
      v_step.completed_at := p_now;
    elsif v_is_taken then
      v_step.error := jsonb_build_object('name', 'KeyConflict', 'code', 'KeyConflict', 'runId', v_child_id::text,
        'message', format('nothing was started, because run %s holds the key', v_child_id));
      v_step.completed_at := p_now;
    end if;
  end if;

  select r.inbox_seq into v_inbox_seq from runs r where r.shard = p_shard and r.id = p_run_id;
  if v_step.kind in ('wait', 'invoke') and v_step.completed_at is null and v_inbox_seq > 0 then
    select s.seq, s.payload into v_signal from signals s
      where s.shard = p_shard and s.run_id = p_run_id and s.consumed_at is null
        and s.name = coalesce('~' || v_step.child_id, p_detail ->> 'event')
        and (p_detail -> 'match' is null or s.payload @> (p_detail -> 'match'))
      order by s.seq limit 1;
    if found then
      perform consume_signals(p_shard, array[p_run_id], array[v_signal.seq], p_now);
      v_step.completed_at := p_now;
      if v_step.kind = 'wait' then
        v_step.output := v_signal.payload;
      elsif v_signal.payload ->> 'status' = 'done' then
        v_step.output := v_signal.payload -> 'output';
      else
        v_step.error := jsonb_build_object('name', 'ChildFailed', 'code', 'ChildFailed', 'runId', v_step.child_id::text,
          'status', v_signal.payload ->> 'status', 'cause', nullif(v_signal.payload -> 'error', 'null'),
          'message', format('run %s %s', v_step.child_id, case when v_signal.payload ->> 'status' = 'cancelled' then 'was cancelled' else 'failed' end)
            || coalesce(': ' || (v_signal.payload -> 'error' ->> 'message'), ''));
      end if;
    end if;
  end if;
  if v_step.kind in ('sleep', 'wait') and v_step.completed_at is null and v_step.due_at <= p_now then
    v_step.completed_at := p_now;
    v_step.output := 'null';
  end if;

  if v_step.completed_at is not null then
    update steps s set seq = p_seq, output = v_step.output, error = v_step.error, completed_at = p_now
      where s.shard = p_shard and s.run_id = p_run_id and s.name = p_name;
    return jsonb_build_object('verdict', 'done', 'seq', p_seq, 'output', v_step.output, 'error', v_step.error);
  end if;
  return jsonb_build_object('verdict', 'pending', 'inbox_seq', v_inbox_seq, 'child_id', v_step.child_id::text,
    'due_ms', extract(epoch from v_step.due_at - p_now) * 1000, 'due_at', v_step.due_at);
end $f$;
