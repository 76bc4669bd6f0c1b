-- pawl: inner
-- Records one entry that waits: for a retry, a time, a signal or a child. The caller
-- (apply_records) has locked the run and checked the guard. A signal wins over a timeout that has
-- passed.
-- The entry of an invoke and the run that it starts are one transaction. That run has a parent but
-- no number of a spawn; its end comes back as a signal (deliver_replies).
create or replace function record_wait(
  p_run_id bigint, p_name text, p_op text, p_seq int, p_attempt int, p_error jsonb, p_delay_ms bigint, p_detail jsonb,
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
  select s.* into v_step from steps s where s.run_id = p_run_id and s.name = p_name;
  if v_step.completed_at is not null then
    return jsonb_build_object('verdict', 'done', 'seq', v_step.seq, 'output', v_step.output, 'error', v_step.error);
  end if;
  if p_op = 'retry' then
    insert into steps (run_id, name, kind, attempt, error, due_at, started_at)
      values (p_run_id, p_name, p_detail ->> 'kind', p_attempt, p_error, v_due_at, p_now)
      on conflict (run_id, name) do update set attempt = excluded.attempt, error = excluded.error, due_at = excluded.due_at
      returning * into v_step;
  elsif v_step.run_id is null and p_op <> 'due' then
    if p_op = 'invoke' and p_detail #>> '{children,0,rate_limit}' is null and p_detail #>> '{children,0,options}' is null
        and (p_detail #>> '{children,0,idempotency_key}' is null or p_detail #>> '{children,0,unique_key}' is null) then
      select n.id, not n.created into v_child_id, v_is_taken
        from new_runs(p_detail -> 'children', array[p_run_id], array[null::int], array[null::int]) n;
    elsif p_op = 'invoke' then
      -- The start may be refused (an unknown limit, keys of two runs). That is recorded like any
      -- other end, because a replay might not be refused.
      begin
        select n.id, not n.created into v_child_id, v_is_taken
          from new_runs(p_detail -> 'children', array[p_run_id], array[null::int], array[null::int]) n;
      exception when others then
        if sqlstate = '55P03' or not is_row_fault(sqlstate) then
          raise;
        end if;
        v_refusal := case when sqlstate = 'PW409' then 'KeyConflict' else 'InvalidOption' end;
        v_refusal_message := sqlerrm;
      end;
    end if;
    insert into steps (run_id, name, kind, child_id, due_at, started_at)
      values (p_run_id, p_name, p_op, v_child_id, v_due_at, p_now)
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

  select r.inbox_seq into v_inbox_seq from runs r where r.id = p_run_id;
  if v_step.kind in ('wait', 'invoke') and v_step.completed_at is null and v_inbox_seq > 0 then
    select s.seq, s.payload into v_signal from signals s
      where s.run_id = p_run_id and s.consumed_at is null
        and s.name = coalesce('~' || v_step.child_id, p_detail ->> 'event')
        and (p_detail -> 'match' is null or s.payload @> (p_detail -> 'match'))
      order by s.seq limit 1;
    if found then
      perform consume_signals(array[p_run_id], array[v_signal.seq], p_now);
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
      where s.run_id = p_run_id and s.name = p_name;
    return jsonb_build_object('verdict', 'done', 'seq', p_seq, 'output', v_step.output, 'error', v_step.error);
  end if;
  return jsonb_build_object('verdict', 'pending', 'inbox_seq', v_inbox_seq, 'child_id', v_step.child_id::text,
    'due_ms', ms_until(v_step.due_at, p_now), 'due_at', v_step.due_at);
end $f$;
