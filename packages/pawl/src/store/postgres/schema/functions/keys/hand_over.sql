-- pawl: inner
-- Claims the first due run of a key for the worker that has just freed it: one call less between two runs of a key. Only a
-- run of the same queue, blocked by the key or not seen by a claim yet, without a rate limit, that needs nothing else than the key; not
-- p_run itself, which has freed it.
-- Answers it like claim does; null if there is none. The caller has the advisory lock of the key.
create or replace function hand_over(
  p_key text, p_queue text, p_worker text, p_claim_id bigint, p_now timestamptz, p_run bigint)
returns jsonb language plpgsql as $f$
declare
  v_id bigint;
  v_run jsonb;
  v_has_inbox boolean;
begin
  v_id := first_of_key(p_key, p_now);
  update runs r set status = 'executing', hold = 0, locked_by = p_worker, claim_id = p_claim_id, turn = 0, throttled = false,
      timed_out = r.timed_out or r.status = 'awaiting_signal', awaits = resolved(r.awaits, r.inbox_seq)
    from workers w
    where r.id = (select n.id from runs n where n.id = v_id limit 1 for no key update skip locked)
      and w.id = p_worker and r.id <> p_run
      and (r.status in ('runnable', 'awaiting_signal') and (r.hold & 14) = 0) is true
      and r.eligible_at <= p_now and r.queue = p_queue and r.rate_limit is null
      and is_key_settled(r.unique_key, r.unique_guard, r.unique_scope)
      and w.seen_at + w.lease > clock_timestamp() and r.name || '@' || r.version = any (w.serves) and not (select s.held from settings s where s.only_row)
      and not exists (select 1 from runs h where h.partition_key = p_key
        and (h.locked_by is not null or h.lease_expires_at is not null))
    returning claimed_run(r), r.inbox_seq > 0 into v_run, v_has_inbox;
  if v_has_inbox then
    -- again, in a statement that began after the lock: a signal may have come in between
    select claimed_run(r) into v_run from runs r where r.id = (v_run ->> 'id')::bigint;
  end if;
  return v_run;
end $f$;
