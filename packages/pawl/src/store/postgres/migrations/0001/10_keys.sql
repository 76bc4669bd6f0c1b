-- What the functions that deal with partition keys share.

-- The advisory lock of a key, taken for the rest of a transaction that claims or frees it.
create function key_lock(p_shard smallint, p_key text) returns bigint language sql immutable as $$
  select hashtextextended(p_key, 1885435756 + p_shard)
$$;

-- Takes the advisory lock of a key for the rest of the transaction; false if it was not to be had within lock_timeout. Waits in
-- a subtransaction of its own, only if it must.
create function lock_key(p_lock bigint) returns boolean language plpgsql as $f$
begin
  if pg_try_advisory_xact_lock(p_lock) then
    return true;
  end if;
  begin
    perform pg_advisory_xact_lock(p_lock);
    return true;
  exception when lock_not_available then
    return false;
  end;
end $f$;

-- Whether a run holds the key: executing, or cancelled and not let go yet. Rides runs_active_key. (A function, because the
-- planner would make one hash table of all holders out of an EXISTS.)
create function is_key_held(p_shard smallint, p_key text) returns boolean language plpgsql stable as $f$
begin
  perform 1 from runs h where h.shard = p_shard and h.partition_key = p_key
    and (h.locked_by is not null or h.lease_expires_at is not null);
  return found;
end $f$;

-- The first due run of a key, in the order (priority, eligible_at, id), or null. Held runs are not in line, nor are runs
-- that no live worker serves and that have been due for a minute (its worker may just be replaced), if there are others:
-- they must not keep the key from those. Rides runs_keyed: the first
-- entry, if that is due and the key has runs of one definition alone; else a skip scan over definitions and priorities, so
-- that neither runs that are not due yet nor runs that nobody serves are walked over.
create function first_of_key(p_shard smallint, p_key text, p_now timestamptz) returns bigint language plpgsql stable as $f$
declare
  v_first record;
begin
  select r.queue, r.name, r.version, r.id, r.eligible_at into v_first from runs r
    where r.shard = p_shard and r.partition_key = p_key
      and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 14) = 0 else false end
    order by r.queue, r.name, r.version, r.priority, r.eligible_at, r.id limit 1;
  if not found then
    return null;
  end if;
  if v_first.eligible_at <= p_now then
    perform 1 from runs r where r.shard = p_shard and r.partition_key = p_key
      and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 14) = 0 else false end
      and (r.queue, r.name, r.version) > (v_first.queue, v_first.name, v_first.version)
      order by r.queue, r.name, r.version limit 1;
    if not found then
      return v_first.id;
    end if;
  end if;
  return (
    with recursive line(queue, name, version) as (
        select v_first.queue, v_first.name, v_first.version
      union all
        select n.queue, n.name, n.version from line l cross join lateral (
          select r.queue, r.name, r.version from runs r where r.shard = p_shard and r.partition_key = p_key
            and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 14) = 0 else false end
            and (r.queue, r.name, r.version) > (l.queue, l.name, l.version)
          order by r.queue, r.name, r.version limit 1) n
    ), level(queue, name, version, priority) as (
        select l.queue, l.name, l.version, -32769 from line l
      union all
        select l.queue, l.name, l.version, n.priority::int from level l cross join lateral (
          select r.priority from runs r where r.shard = p_shard and r.partition_key = p_key
            and r.queue = l.queue and r.name = l.name and r.version = l.version and r.priority > l.priority
            and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 14) = 0 else false end
          order by r.priority limit 1) n
    ), head as materialized (
      select l.queue, l.name, l.version, due.* from level l cross join lateral (
        select r.priority, r.eligible_at, r.id from runs r where r.shard = p_shard and r.partition_key = p_key
          and r.queue = l.queue and r.name = l.name and r.version = l.version and r.priority = l.priority
          and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 14) = 0 else false end
          and r.eligible_at <= p_now
        order by r.eligible_at, r.id limit 1) due
    ), definition as (
      select d.queue, d.name, d.version, count(*) over () = 1 or is_served(d.name, d.version, d.queue) as is_served
      from (select distinct h.queue, h.name, h.version from head h) d
    )
    select h.id from head h join definition d on d.queue = h.queue and d.name = h.name and d.version = h.version
    order by d.is_served or h.eligible_at > p_now - interval '1 minute' desc, h.priority, h.eligible_at, h.id limit 1);
end $f$;

-- Leaves keys to the repair, which looks at them within a second.
create function leave_keys(p_shard smallint, p_key text[]) returns void language plpgsql as $f$
begin
  insert into left_keys (shard, partition_key) select p_shard, k.key from unnest(p_key) k(key);
end $f$;

-- Lets the first due run of each key in, if nobody holds the key and that run is blocked. The caller has the advisory
-- locks of the keys. A run that somebody has locked is left to the repair, and no other is let in instead of it.
-- Answers the claimable runs it made, by queue: [[queue, priority, µs], …].
create function unblock_first(p_shard smallint, p_key text[], p_now timestamptz) returns jsonb language plpgsql as $f$
declare
  v_ids bigint[];
  v_left text[];
  v_claimable jsonb;
begin
  with first as materialized (
    select k.key, b.id from unnest(p_key) k(key)
    cross join lateral (select first_of_key(p_shard, k.key, p_now) as id where not is_key_held(p_shard, k.key)) f
    cross join lateral (select r.id from runs r where r.shard = p_shard and r.id = f.id and (r.hold = 1) is true limit 1) b)
  select array_agg(l.id) filter (where l.id is not null), array_agg(f.key) filter (where l.id is null) into v_ids, v_left
  from first f left join lateral (select r.id from runs r where r.shard = p_shard and r.id = f.id and r.hold = 1
    limit 1 for no key update skip locked) l on true;
  if v_left is not null then
    perform leave_keys(p_shard, v_left);
  end if;
  if v_ids is null then
    return '[]';
  end if;
  with freed as (
    update runs r set hold = 0
    from (select p_shard as shard, u.id from unnest(v_ids) u(id) limit cardinality(v_ids)) v
    where r.shard = v.shard and r.id = v.id and (r.hold = 1) is true
    returning r.queue, r.priority, r.eligible_at)
  select jsonb_agg(g.entry) into v_claimable
  from (select jsonb_build_array(f.queue, min(f.priority), to_us(min(f.eligible_at))) as entry
    from freed f group by f.queue) g;
  return coalesce(v_claimable, '[]');
end $f$;

-- After runs of these keys were let go, or left the line: lets the next of each in. Takes the locks of the keys in one
-- order, after all row locks. A key that stays locked too long is left to the repair; from then on it waits for no other.
-- With p_worker and a claim id at its position, the next run of a key that the run p_run has freed is handed over to that worker, if it
-- serves it in that queue, instead of going through the claim index: `handed` is [[position, run], …]; see hand_over.
create function free_keys(
  p_shard smallint, p_key text[], p_now timestamptz, p_worker text, p_claim_id bigint[], p_queue text[], p_run bigint[],
  out claimable jsonb, out handed jsonb)
language plpgsql as $f$
declare
  c_bytes constant int := 8 * 1024 * 1024;    -- what one call hands over, and one run more
  v_bytes bigint := 0;
  v_key text;
  v_mine text[] := '{}';
  v_left text[] := '{}';
  v_run jsonb;
begin
  handed := '[]';
  claimable := '[]';
  for v_key in select k.key from (select distinct u.key, key_lock(p_shard, u.key) as lock from unnest(p_key) u(key)) k order by k.lock loop
    if pg_try_advisory_xact_lock(key_lock(p_shard, v_key)) or v_left = '{}' and lock_key(key_lock(p_shard, v_key)) then
      v_mine := v_mine || v_key;
    else
      v_left := v_left || v_key;
    end if;
  end loop;
  if v_left <> '{}' then
    perform leave_keys(p_shard, v_left);
  end if;
  if p_worker is not null then
    for i in 1 .. cardinality(p_key) loop
      exit when v_bytes > c_bytes;
      if p_claim_id[i] is not null and p_key[i] = any (v_mine) then
        v_run := hand_over(p_shard, p_key[i], p_queue[i], p_worker, p_claim_id[i], p_now, p_run[i]);
        if v_run is not null then
          handed := handed || jsonb_build_array(jsonb_build_array(i, v_run));
          v_bytes := v_bytes + pg_column_size(v_run);
        end if;
      end if;
    end loop;
  end if;
  if v_mine <> '{}' and jsonb_array_length(handed) < cardinality(p_key) then
    claimable := unblock_first(p_shard, v_mine, p_now);
  end if;
end $f$;

-- Claims the first due run of a key for the worker that has just freed it: one call less between two runs of a key. Only a
-- run of the same queue, blocked by the key or not seen by a claim yet, without a rate limit, that needs nothing else than the key; not
-- p_run itself, which has freed it.
-- Answers it like claim does; null if there is none. The caller has the advisory lock of the key.
create function hand_over(
  p_shard smallint, p_key text, p_queue text, p_worker text, p_claim_id bigint, p_now timestamptz, p_run bigint)
returns jsonb language plpgsql as $f$
declare
  v_id bigint;
  v_run jsonb;
  v_has_inbox boolean;
begin
  v_id := first_of_key(p_shard, p_key, p_now);
  update runs r set status = 'executing', hold = 0, locked_by = p_worker, claim_id = p_claim_id, turn = 0, throttled = false,
      timed_out = r.timed_out or r.status = 'awaiting_signal', awaits = resolved(r.awaits, r.inbox_seq)
    from workers w
    where r.shard = p_shard
      and r.id = (select n.id from runs n where n.shard = p_shard and n.id = v_id limit 1 for no key update skip locked)
      and w.id = p_worker and r.id <> p_run
      and (r.status in ('runnable', 'awaiting_signal') and (r.hold & 14) = 0) is true
      and r.eligible_at <= p_now and r.queue = p_queue and r.rate_limit is null
      and is_key_settled(r.unique_key, r.unique_guard, r.unique_scope)
      and w.seen_at + w.lease > clock_timestamp() and r.name || '@' || r.version = any (w.serves) and not (select s.held from settings s where s.only_row)
      and not exists (select 1 from runs h where h.shard = p_shard and h.partition_key = p_key
        and (h.locked_by is not null or h.lease_expires_at is not null))
    returning claimed_run(r), r.inbox_seq > 0 into v_run, v_has_inbox;
  if v_has_inbox then
    -- again, in a statement that began after the lock: a signal may have come in between
    select claimed_run(r) into v_run from runs r where r.shard = p_shard and r.id = (v_run ->> 'id')::bigint;
  end if;
  return v_run;
end $f$;
