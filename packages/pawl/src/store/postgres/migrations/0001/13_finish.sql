-- Commits `done` of one run without a parent: what commit does, in the fewest statements, because a lone commit is what
-- somebody waits for. With a key (p_key) the next run in line for it is handed over to p_worker, under p_next_claim_id, or let in. With
-- p_line the answer also says who is in line behind that one (see line_behind). One of those, given as p_next, is handed over in the
-- statement that ends this run, if it still can be; the line is not looked at, and from one to the other the key is never free.
-- Answers one row, or none if the guard does not hold (nothing was written: commit tells why). If it fails, nothing was written
-- either, and commit isolates the cause.
create function finish(
  p_shard smallint, p_id bigint, p_claim_id bigint, p_turn int, p_step text, p_result text,
  p_key text, p_worker text, p_next_claim_id bigint, p_next bigint, p_line boolean
) returns table (claimable text, handed text, line text)
language plpgsql as $f$
declare
  v_now timestamptz;
  v_run record;
  v_ended record;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform require_read_committed();
  end if;
  if current_setting('synchronous_commit') = 'off' then
    perform require_durable_commit();
  end if;
  v_now := now();
  if p_next is null then
    update runs r set turn = r.turn + 1, locked_by = null, status = 'done', step = coalesce(p_step, r.step), result = p_result::jsonb,
        error = null, crashes = 0, completed_at = v_now, expires_at = v_now + r.retention, timed_out = false, awaits = null,
        shown = null, rate_limit = null, weight = null, children_pending = 0
      where r.shard = p_shard and r.id = p_id and r.claim_id = p_claim_id and r.turn = p_turn and (r.status = 'executing') is true
      returning r.queue, r.inbox_seq, r.kind into v_ended;
    if not found then
      return;
    end if;
  else
    -- first the run that ends, which is waited for, then the next, which is not: nothing is waited for with a lock in hand
    for v_run in
      update runs r set status = case when v.is_end then 'done'::run_status else 'executing'::run_status end,
          hold = case when v.is_end then r.hold else 0 end,
          locked_by = case when v.is_end then null else p_worker end,
          claim_id = case when v.is_end then r.claim_id else p_next_claim_id end,
          turn = case when v.is_end then r.turn + 1 else 0 end,
          step = case when v.is_end then coalesce(p_step, r.step) else r.step end,
          result = case when v.is_end then p_result::jsonb else r.result end,
          completed_at = case when v.is_end then v_now end,
          expires_at = case when v.is_end then v_now + r.retention end,
          error = null, crashes = 0, timed_out = false, awaits = null, shown = null, rate_limit = null, weight = null, children_pending = 0
        from (select p_shard as shard, p_id as id, true as is_end
          union all
            select p_shard, l.id, false
            from (select n.id from runs n where n.shard = p_shard and n.id = p_next limit 1 for no key update skip locked) l) v
        where r.shard = v.shard and r.id = v.id
          and case when v.is_end then r.claim_id = p_claim_id and r.turn = p_turn and r.status = 'executing'
            else r.id <> p_id and r.status = 'runnable' and (r.hold & 6) = 0 and r.partition_key = p_key and r.eligible_at <= v_now
              -- nothing that the end of the other would wipe out
              and r.inbox_seq = 0 and r.rate_limit is null and r.awaits is null and r.error is null and r.crashes = 0
              and (r.unique_key is null or r.unique_guard is not null)
              and (select w.seen_at + w.lease > clock_timestamp() and not s.held from workers w, settings s
                where w.id = p_worker and s.only_row) end
        returning v.is_end, r.queue, r.inbox_seq, r.kind, case when not v.is_end then claimed_run(r) end as handed
    loop
      if v_run.is_end then
        v_ended := v_run;
      else
        handed := v_run.handed;
      end if;
    end loop;
    if v_ended is null then
      raise exception 'the claim on run % is gone', p_id using errcode = 'PW410';
    end if;
  end if;
  if v_ended.kind = 'workflow' and timeline() <> (select s.timeline from settings s where s.only_row) then
    raise exception 'the server has gone on to another timeline' using errcode = 'PW410';
  end if;
  if v_ended.inbox_seq > 0 then
    perform clear_inboxes(p_shard, array[p_id], v_now);
  end if;
  if p_key is not null and handed is null and lock_key(key_lock(p_shard, p_key)) then
    if p_next_claim_id is not null then
      handed := hand_over(p_shard, p_key, v_ended.queue, p_worker, p_next_claim_id, v_now, p_id);
    end if;
    if handed is null then
      claimable := nullif(unblock_first(p_shard, array[p_key], v_now), '[]');
    elsif p_line then
      line := line_behind(p_shard, (handed::jsonb ->> 'id')::bigint, v_now);
    end if;
  end if;
  return next;
end $f$;
