-- pawl: inner
-- Rate limits, for claim: answers those of the runs p_id, at most p_want, that claim may take.
-- claim has locked them. A run without a limit may always be taken. A run with a limit takes its
-- weight from the bucket. If the bucket has too little, the run is put off (throttled) to the time
-- of its tokens, behind the runs put off before it (promised_at).
-- A new run takes tokens only if the first run that was put off will not need them when it is due.
-- A run that was put off before and finds too little stays at the front.
-- Does not wait for a bucket that another claim has locked (contended). `freed` are the keys whose
-- first run was put off, `throttled` says how many were.
-- Each run is put off once, to the time of its tokens, instead of waking with all others. Nothing
-- refills a bucket: its tokens are computed from updated_at. Rides runs_throttled.
create or replace function claim_limited(
  p_id bigint[], p_want int, p_now timestamptz, out allowed bigint[], out freed text[], out contended boolean,
  out throttled int)
language plpgsql as $f$
declare
  v_slotted bigint[];
  v_run record;
  v_limit record;
  v_bucket buckets;
  v_access text;             -- to the current bucket: 'mine', 'busy' or 'unlimited'
  v_known text;              -- the current rate limit; null: none yet
  v_tokens double precision;
  v_rate double precision;   -- tokens per second
  v_need double precision;
  v_promised timestamptz;    -- the end of the line
  v_front timestamptz;       -- due time of the last run that stays at its front
  v_first_at timestamptz;    -- due time of the first in line, and its need; null: none waits
  v_first_need double precision;
  v_is_looked boolean;       -- whether v_first_at is known
  v_has_pauses boolean := has_pauses();
  v_off_first_at timestamptz;    -- the same for the runs that this call puts off
  v_off_first_need double precision;
  v_taken bigint[] := '{}';
  v_off bigint[] := '{}';
  v_off_at timestamptz[] := '{}';
begin
  freed := '{}';
  contended := false;
  for v_run in
    select u.id, r.rate_limit, r.weight, r.throttled, r.partition_key,
      split_part(r.rate_limit, ':', 1) as name, substr(r.rate_limit, length(split_part(r.rate_limit, ':', 1)) + 2) as key
    from unnest(p_id) with ordinality u(id, o)
    cross join lateral (select t.rate_limit, t.weight, t.throttled, t.partition_key
      from runs t where t.id = u.id limit 1) r
    where r.rate_limit is not null
    order by r.rate_limit, u.o
  loop
    if v_run.rate_limit is distinct from v_known then
      if v_access = 'mine' then
        perform put_bucket(v_bucket.name, v_bucket.key, v_tokens, p_now, v_promised, v_limit.changes);
      end if;
      v_known := v_run.rate_limit;
      v_access := 'unlimited';
      select l.* into v_limit from limits l where l.name = v_run.name;
      if found and v_limit.allowed is not null then
        v_bucket := take_bucket(v_run.name, v_run.key, v_limit.burst, p_now);
        v_access := case when v_bucket.name is null then 'busy' else 'mine' end;
        v_rate := tokens_per_second(v_limit.allowed, v_limit.period);
        -- Another claim may have read the clock later and locked the bucket earlier: no stretch of
        -- time counts twice.
        v_tokens := least(v_limit.burst,
          v_bucket.tokens + greatest(ms_until(p_now, v_bucket.updated_at) / 1000, 0) * v_rate);
        v_promised := case when v_bucket.changes = v_limit.changes then v_bucket.promised_at else p_now end;
        v_front := later(p_now, - v_tokens / v_rate);
        v_is_looked := false;
        v_off_first_at := null;
      end if;
    end if;
    continue when cardinality(v_taken) >= p_want;    -- no slot: no token either
    if v_access = 'busy' then
      contended := true;
      continue;
    elsif v_access = 'unlimited' then
      v_taken := v_taken || v_run.id;
      continue;
    end if;

    v_need := least(v_run.weight, v_limit.burst);
    if not v_run.throttled and not v_is_looked then
      -- a paused run keeps no tokens from others: if the first 100 in line are, nobody waits
      select f.eligible_at, least(f.weight, v_limit.burst) into v_first_at, v_first_need from (
          select r.eligible_at, r.weight, r.hold, r.queue, r.name, r.version from runs r
          where r.rate_limit = v_known and r.throttled and (r.id <> all (v_taken)) is true
          order by r.eligible_at limit 100) f
        where (f.hold & 16) = 0 and not (v_has_pauses and is_paused(f.queue, f.name, f.version))
        order by f.eligible_at limit 1;
      if v_first_at is null or v_first_at > v_off_first_at then
        v_first_at := v_off_first_at;
        v_first_need := v_off_first_need;
      end if;
      v_is_looked := true;
    end if;
    if v_tokens + 1e-6 >= v_need and (v_run.throttled or v_first_at is null
        or least(v_limit.burst, v_tokens - v_need + greatest(ms_until(v_first_at, p_now) / 1000, 0) * v_rate) + 1e-6 >= v_first_need) then
      v_tokens := v_tokens - v_need;
      v_front := later(p_now, - v_tokens / v_rate);
      v_taken := v_taken || v_run.id;
      v_is_looked := v_is_looked and not v_run.throttled;
      continue;
    end if;
    if v_run.throttled then
      v_front := later(v_front, v_need / v_rate) + interval '1 microsecond';
      v_promised := greatest(v_promised, v_front);
      v_off_at := v_off_at || v_front;
    else
      v_promised := later(case when v_first_at is null then v_front else greatest(v_promised, v_front) end, v_need / v_rate)
        + interval '1 microsecond';
      v_off_at := v_off_at || v_promised;
      if v_off_first_at is null then
        v_off_first_at := v_promised;
        v_off_first_need := v_need;
      end if;
      if v_first_at is null then
        v_first_at := v_promised;
        v_first_need := v_need;
      end if;
    end if;
    v_off := v_off || v_run.id;
    freed := freed || v_run.partition_key;
  end loop;
  if v_access = 'mine' then
    perform put_bucket(v_bucket.name, v_bucket.key, v_tokens, p_now, v_promised, v_limit.changes);
  end if;

  -- whoever has no tokens leaves the line for a slot
  with off as (
    update runs r set throttled = true, eligible_at = v.at
    from (select u.id, u.at from unnest(v_off, v_off_at) u(id, at) limit cardinality(v_off)) v
    where r.id = v.id and (r.status in ('runnable', 'awaiting_signal')) is true
    returning r.id, r.concurrency)
  select array_agg(o.id) into v_slotted from off o where o.concurrency is not null;
  if v_slotted is not null then
    perform leave_slots(v_slotted);
  end if;
  -- the runs that took tokens first, then runs without a limit up to p_want; in the order of p_id
  allowed := array(
    select c.id from (
      select u.id, u.o from unnest(p_id) with ordinality u(id, o)
      cross join lateral (select t.rate_limit from runs t where t.id = u.id limit 1) r
      where r.rate_limit is null or u.id = any (v_taken)
      order by r.rate_limit is null, u.o limit p_want) c
    order by c.o);
  freed := array_remove(freed, null);
  throttled := cardinality(v_off);
end $f$;

-- Locks a bucket, and creates a full one if there is none. Answers null if another transaction has
-- it locked or is just creating it.
create or replace function take_bucket(p_name text, p_key text, p_burst double precision, p_now timestamptz) returns buckets
language plpgsql as $f$
declare
  v_bucket buckets;
begin
  for v_try in 1 .. 2 loop
    select b.* into v_bucket from buckets b
      where b.name = p_name and b.key = p_key for update skip locked;
    if found or exists (select 1 from buckets b where b.name = p_name and b.key = p_key) then
      return v_bucket;
    end if;
    begin
      insert into buckets (name, key, tokens, updated_at, promised_at)
        values (p_name, p_key, p_burst, p_now, p_now) on conflict do nothing;
    exception when lock_not_available then
      return null;
    end;
  end loop;
  return null;
end $f$;

-- Writes a bucket that take_bucket has locked.
create or replace function put_bucket(
  p_name text, p_key text, p_tokens double precision, p_now timestamptz, p_promised timestamptz, p_changes int)
returns void language plpgsql as $f$
begin
  update buckets b set tokens = p_tokens, updated_at = greatest(b.updated_at, p_now), promised_at = p_promised, changes = p_changes
    where b.name = p_name and b.key = p_key;
end $f$;
