-- pawl: inner
-- Claims the first due run of a key for the worker that has just freed it: one call less between
-- two runs of a key. Takes only a run of the same queue, blocked by the key or not seen by a claim
-- yet. The run must need nothing but the key: no rate or concurrency limit, no unsettled unique key,
-- not paused. Never takes p_run itself, which has freed the key.
-- Answers the run like claim does; null if there is none. The caller has the advisory lock of the
-- key. Locks the run with SKIP LOCKED.
create or replace function hand_over(p_key text, p_worker text, p_claim_id bigint, p_now timestamptz, p_run bigint)
returns jsonb language plpgsql as $f$
declare
  v_id bigint;
begin
  select r.id into v_id from runs r
    where r.id = first_of_key(p_key, p_now) and r.id <> p_run and r.queue = (select f.queue from runs f where f.id = p_run) and r.rate_limit is null
      and r.concurrency is null
      and is_key_settled(r.unique_key, r.unique_guard, r.unique_scope)
      and is_claiming(p_worker, r.queue, r.name, r.version)
    for no key update skip locked;
  if not found or is_key_held(p_key) then
    return null;
  end if;
  -- decide again in a statement after the lock: another transaction may have changed the row
  perform 1 from runs r where r.id = v_id and r.status in ('runnable', 'awaiting_signal') and (r.hold & 30) = 0 and r.eligible_at <= p_now;
  if not found then
    return null;
  end if;
  return (select to_jsonb(c) from take_claims(array[v_id], p_worker, p_claim_id, p_now, 262144, 0, 'settled', null) c);
end $f$;
