-- pawl: inner
-- Concurrency limits, for claim: answers those of the runs p_id, in order, that claim may take, and
-- at the same positions the slots that they get (null: a run without a limit). The caller has locked
-- the runs; p_key are the keys of their limits. A run may be taken if a slot of its key is free, and
-- if no more runs are ahead of it in its line than slots are free.
-- take_claims writes the slots down, in the same transaction. The advisory lock
-- only makes one transaction at a time look at a key. The caller took it before it locked the runs;
-- here it is tried again for runs that got another key since.
-- The other runs of a key join its line (hold bit 32, put_slots), with up to 1,000 runs behind them in
-- the queue. They leave the claim index until a slot is free (admit). A run that waits for a slot
-- waits for no tokens: it is not throttled any longer, so that it keeps them from no other run.
-- Rides slots_held, slots_line, and runs_claim for the runs behind.
create or replace function claim_slots(
  p_id bigint[], p_key text[], p_now timestamptz, out allowed bigint[], out slots smallint[], out contended boolean)
language plpgsql as $f$
declare
  c_slots constant int := 1000;    -- more than one claim takes
  c_many constant int := 50;       -- from here on, look for more of the same keys
  v_mine text[];
  v_run record;
  v_key text;
  v_free smallint[];
  v_taken int;
  v_line text;
  v_last record;                   -- the last place in line that gets a slot; its id is null: all do
  v_full text[] := '{}';
  v_ids bigint[] := '{}';
  v_slots smallint[] := '{}';
  v_refused bigint[] := '{}';
  v_joined bigint[];
  v_busy bigint[] := '{}';
begin
  v_mine := array(select k.key from unnest(p_key) k(key) where pg_try_advisory_xact_lock(slot_lock(k.key)));
  contended := cardinality(v_mine) < cardinality(p_key);

  -- in statements of their own: the last holder of the lock has committed before they begin
  for v_run in
    select u.id, r.concurrency, r.queue, r.name, r.version, r.priority, r.eligible_at
    from unnest(p_id) with ordinality u(id, o)
    cross join lateral (select t.* from runs t where t.id = u.id limit 1) r
    where r.concurrency is not null
    order by r.concurrency, u.o
  loop
    if v_run.concurrency is distinct from v_key then
      v_key := v_run.concurrency;
      v_free := case when v_key = any (v_mine) then free_slots_of(v_key, c_slots) end;
      v_taken := 0;
      v_line := null;
    end if;
    if v_free is null then
      v_busy := v_busy || v_run.id;
      continue;
    end if;
    if v_taken < cardinality(v_free) and v_run.name || '@' || v_run.version is distinct from v_line then
      v_line := v_run.name || '@' || v_run.version;
      select s.priority, s.eligible_at, s.run_id as id into v_last from slots s
        where s.concurrency = v_key and s.queue = v_run.queue and s.name = v_run.name and s.version = v_run.version
          and s.slot = 0 and is_in_line(s.run_id)
        order by s.priority, s.eligible_at, s.run_id offset cardinality(v_free) - 1 limit 1;
    end if;
    if v_taken < cardinality(v_free) and (v_last.id is null
        or (v_run.priority, v_run.eligible_at, v_run.id) <= (v_last.priority, v_last.eligible_at, v_last.id)) then
      v_taken := v_taken + 1;
      v_ids := v_ids || v_run.id;
      v_slots := v_slots || v_free[v_taken];
    else
      v_refused := v_refused || v_run.id;
      v_full := v_full || v_key;
    end if;
  end loop;

  if v_refused <> '{}' then
    if cardinality(v_refused) >= c_many then
      v_refused := v_refused || behind_in_queue(v_refused[cardinality(v_refused)], v_full, p_now);
    end if;
    with refused as (
      update runs r set hold = 32, throttled = false
      from (select u.id from unnest(v_refused) u(id) limit cardinality(v_refused)) v
      where r.id = v.id and (r.hold = 0) is true
      returning r.id)
    select array_agg(r.id) into v_joined from refused r;
    perform put_slots(v_joined, null);
  end if;
  select array_agg(u.id order by u.o), array_agg(v_slots[array_position(v_ids, u.id)] order by u.o) into allowed, slots
    from unnest(p_id) with ordinality u(id, o) where u.id <> all (v_refused) and u.id <> all (v_busy);
end $f$;

-- Locks the runs of these keys among the 1,000 due runs behind p_id in its queue. So a backlog of one
-- key leaves the claim index at once, and no claim has to walk over it. Rides runs_claim.
create or replace function behind_in_queue(p_id bigint, p_key text[], p_now timestamptz) returns bigint[] language plpgsql as $f$
declare
  c_walked constant int := 1000;
  v_last record;
begin
  select r.queue, r.name, r.version, r.priority, r.eligible_at, r.id into v_last from runs r where r.id = p_id;
  return array(
    select l.id from (
      select r.id, r.concurrency from runs r
      where r.queue = v_last.queue and r.name = v_last.name and r.version = v_last.version and r.priority = v_last.priority
        and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.eligible_at <= p_now
        and (r.eligible_at, r.id) > (v_last.eligible_at, v_last.id)
      order by r.eligible_at, r.id limit c_walked) b
    cross join lateral (select r.id from runs r where r.id = b.id and (r.hold = 0 and r.concurrency = any (p_key)
      and r.status in ('runnable', 'awaiting_signal')) is true limit 1 for no key update skip locked) l
    where b.concurrency = any (p_key));
end $f$;
