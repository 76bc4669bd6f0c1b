-- pawl: call; lock_timeout 100ms
-- Commits `done` of one run without a parent, in the fewest statements, because somebody waits for a
-- lone run: a third less than commit. The columns are those of `ended` in apply_transitions.
-- With a key (p_key), the next run in line for it is handed over to p_worker under p_next_claim_id,
-- or let in. Answers one row, or none if the guard does not hold: nothing was written, and commit
-- tells why. If it fails, nothing was written either, and commit isolates the cause.
create or replace function finish(
  p_id bigint, p_claim_id bigint, p_turn bigint, p_step text, p_result text,
  p_key text, p_worker text, p_next_claim_id bigint
) returns table (claimable text, handed text)
language plpgsql as $f$
declare
  v_now timestamptz;
  v_run record;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform require_read_committed();
  end if;
  if current_setting('synchronous_commit') = 'off' then
    perform require_durable_commit();
  end if;
  v_now := clock();
  update runs r set turn = r.turn + 1, locked_by = null, status = 'done', hold = 0, step = coalesce(p_step, r.step), result = p_result::jsonb,
      error = null, crashes = 0, completed_at = v_now, expires_at = v_now + r.retention, timed_out = false, awaits = null,
      shown = null, rate_limit = null, weight = null, children_pending = 0
    where r.id = p_id and r.claim_id = p_claim_id and r.turn = p_turn and (r.status = 'executing' and r.locked_by is not null) is true
    returning r.inbox_seq, r.kind, r.concurrency, r.has_extras into v_run;
  if not found then
    return;
  end if;
  if v_run.kind = 'workflow' and timeline() <> (select s.timeline from settings s where s.only_row) then
    raise exception 'the server has gone on to another timeline' using errcode = 'PW410';
  end if;
  if v_run.inbox_seq > 0 then
    perform clear_inboxes(array[p_id], v_now);
  end if;
  if v_run.has_extras then
    perform end_extras(array[p_id]);
  end if;
  if p_key is not null and not lock_key(key_lock(p_key)) then
    perform note_keys_to_repair(array[p_key]);
  elsif p_key is not null then
    if p_next_claim_id is not null then
      handed := hand_over(p_key, p_worker, p_next_claim_id, v_now, p_id);
    end if;
    if handed is null then
      claimable := nullif(unblock_first(array[p_key], v_now), '[]');
    end if;
  end if;
  if v_run.concurrency is not null then
    claimable := nullif(coalesce(claimable::jsonb, '[]') || free_slots(leave_slots(array[p_id]), v_now), '[]');
  end if;
  return next;
end $f$;
