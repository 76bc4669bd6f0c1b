-- pawl: inner
-- Takes the claims on claimable runs that the caller has locked. No other statement turns an
-- existing run to executing; start inserts new runs already claimed. Answers the claimed runs in
-- the order of p_id. Each has its inbox, or its journal if it is a workflow, up to p_inline bytes.
--   p_signals  1 if the caller has just put the signal into the inbox that ends the wait. A wait
--              that is claimed without one has timed out.
--   p_slot     the slots of concurrency limits that the runs get (claim_slots); null: no run has one
--   p_unique   'settled' claims only runs that hold their unique key or have none. 'enter' also
--              takes runs that enter their unique scope now, and raises if the key is taken. 'give
--              up' takes them without their key (claim_entering_scope).
create or replace function take_claims(
  p_id bigint[], p_worker text, p_claim_id bigint, p_now timestamptz, p_inline int, p_signals int, p_unique text, p_slot smallint[]
) returns setof claimed_run language plpgsql as $f$
begin
  if p_slot is not null then
    perform put_slots(array_agg(u.id), array_agg(u.slot)) from unnest(p_id, p_slot) u(id, slot)
    cross join lateral (select t.unique_key, t.unique_guard, t.unique_scope from runs t where t.id = u.id limit 1) r
    where u.slot is not null and (p_unique <> 'settled' or is_key_settled(r.unique_key, r.unique_guard, r.unique_scope));
  end if;
  return query
    update runs r set status = 'executing', hold = 0, locked_by = p_worker, claim_id = p_claim_id, turn = 0, throttled = false,
      timed_out = r.timed_out or (r.status = 'awaiting_signal' and p_signals = 0),
      inbox_seq = r.inbox_seq + p_signals, awaits = resolved(r.awaits, r.inbox_seq + p_signals),
      eligible_at = case when p_signals > 0 then least(r.eligible_at, p_now) else r.eligible_at end,
      unique_key = case when p_unique <> 'give up' then r.unique_key end,
      unique_scope = case when p_unique <> 'give up' then r.unique_scope end
    from (select u.id from unnest(p_id) u(id) limit cardinality(p_id)) c
    where r.id = c.id and (p_unique <> 'settled' or is_key_settled(r.unique_key, r.unique_guard, r.unique_scope))
    returning r.id::text, r.name, r.version, r.step, r.priority, r.attempt, r.crashes, r.parent_id::text, r.partition_key, r.timed_out,
      (r.awaits ->> 'children')::int, r.inbox_seq,
      case when r.inbox_seq > 0 and r.kind is distinct from 'workflow' then inbox_inline(r.id, r.awaits, p_inline) end,
      case when r.state is null then r.input::text end, r.state::text,
      case when r.kind = 'workflow' and (select 1 from steps s where s.run_id = r.id limit 1) is not null
        then journal_inline(r.id, p_inline) end,
      case when r.kind = 'workflow' and r.inbox_seq > 0 then inbox_names(r.id, p_inline) end,
      p_unique = 'give up', date_part('epoch', r.inserted_at) * 1000, r.trace,
      case when r.has_extras or starts_with(r.idempotency_key, 'schedule/') then claim_extra(r, p_now) end;
end $f$;
