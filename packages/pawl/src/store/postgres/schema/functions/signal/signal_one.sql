-- pawl: call
-- Puts one signal into an inbox, in the fewest statements, because a caller waits for a lone
-- signal. If it ends the run's wait, it hands the run over to p_worker under p_claim_id instead of
-- leaving it to a claim. The worker must serve the run and have a free slot in its queue
-- (p_queues). The run must have no partition key, rate limit or concurrency limit and not be paused,
-- and the database must not be held.
-- Answers one row. Answers none for anything but a plain delivery: no such run, ended, a known
-- dedup key, an inbox that may be full, or a run that may have lost its unique key. Then nothing
-- was written, and signal decides. Locks the run.
create or replace function signal_one(
  p_run_id bigint, p_name text, p_payload text, p_dedup_key text, p_worker text, p_queues text[], p_claim_id bigint,
  p_patient boolean
) returns table (run_name text, trace text, claimable text, queue text, handed text)
language plpgsql as $f$
#variable_conflict use_column
declare
  c_inbox constant int := 9000;
  v_now timestamptz;
  v_run record;
  v_is_met boolean;
begin
  if current_setting('synchronous_commit') = 'off' then
    perform require_durable_commit();
  end if;
  if octet_length(p_name) > 256 then
    perform require_short_names('signal', array[p_name]);
  end if;
  if not p_patient then
    perform set_config('lock_timeout', '100ms', true);
  end if;
  select r.status, r.kind, r.awaits, r.inbox_seq, r.queue, r.priority, r.eligible_at, r.name, r.version, r.trace,
      r.unique_key is null or r.unique_guard is not null as can_enter,
      r.hold = 0 and r.partition_key is null and r.rate_limit is null and r.concurrency is null
        and is_key_settled(r.unique_key, r.unique_guard, r.unique_scope) as is_free
    into v_run from runs r where r.id = p_run_id and r.id < first_message_id() for no key update;
  if not found or v_run.status in ('done', 'failed', 'cancelled') or v_run.inbox_seq >= c_inbox then
    return;
  end if;
  v_is_met := coalesce(v_run.status = 'awaiting_signal' and is_wanted(v_run.awaits, p_name, p_payload::jsonb), false);
  if v_is_met and not v_run.can_enter then
    return;
  end if;
  v_now := clock();
  insert into signals (run_id, seq, name, payload, dedup_key, inserted_at)
    values (p_run_id, v_run.inbox_seq + 1, p_name, p_payload::jsonb, p_dedup_key, v_now)
    on conflict do nothing;
  if not found then
    return;
  end if;
  if v_is_met and v_run.kind = 'workflow' and end_lone_wait(p_run_id, v_run.awaits, p_payload::jsonb, v_now) then
    perform consume_signals(array[p_run_id], array[v_run.inbox_seq + 1], v_now);
  end if;
  if not v_is_met then
    update runs r set inbox_seq = r.inbox_seq + 1 where r.id = p_run_id;
  elsif v_run.is_free and v_run.queue = any (p_queues) and is_claiming(p_worker, v_run.queue, v_run.name, v_run.version) then
    queue := v_run.queue;
    select to_jsonb(c) into handed from take_claims(array[p_run_id], p_worker, p_claim_id, v_now, 262144, 1, 'settled', null) c;
  else
    update runs r set inbox_seq = r.inbox_seq + 1, status = 'runnable', eligible_at = least(r.eligible_at, v_now)
      where r.id = p_run_id;
    claimable := jsonb_build_array(jsonb_build_array(v_run.queue, v_run.priority,
      to_us(least(v_run.eligible_at, v_now))));
  end if;
  run_name := v_run.name;
  trace := v_run.trace;
  return next;
end $f$;
