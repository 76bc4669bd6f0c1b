-- What the functions that deal with partition keys share.

-- The advisory lock of a key, taken for the rest of a transaction that claims or frees it.
create function key_lock(p_shard smallint, p_key text) returns bigint language sql immutable as $$
  select hashtextextended(p_key, 1885435756 + p_shard)
$$;

-- Whether a run holds the key: executing, or cancelled and not let go yet. Rides runs_active_key. (A function, because the
-- planner would make one hash table of all holders out of an EXISTS.)
create function is_key_held(p_shard smallint, p_key text) returns boolean language plpgsql stable as $f$
begin
  perform 1 from runs h where h.shard = p_shard and h.partition_key = p_key
    and (h.locked_by is not null or h.lease_expires_at is not null);
  return found;
end $f$;

-- The first due run of a key, in the order (priority, eligible_at, id); runs that are held or that nobody serves are not
-- in line. Rides runs_keyed, a skip scan over its priorities: runs that are not due yet are never walked over.
create function first_of_key(p_shard smallint, p_key text, p_now timestamptz) returns table (id bigint, hold smallint)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    with recursive level(priority) as (
        (select r.priority from runs r where r.shard = p_shard and r.partition_key = p_key
          and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 6) = 0 else false end
          order by r.priority limit 1)
      union all
        select (select r.priority from runs r where r.shard = p_shard and r.partition_key = p_key
          and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 6) = 0 else false end
          and r.priority > level.priority order by r.priority limit 1)
        from level where level.priority is not null)
    select due.id, due.hold from level cross join lateral (
      select r.id, r.hold from runs r where r.shard = p_shard and r.partition_key = p_key and r.priority = level.priority
        and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 6) = 0 else false end
        and r.eligible_at <= p_now
      order by r.eligible_at, r.id limit 1) due
    where level.priority is not null
    limit 1;
end $f$;

-- Lets the first due run of each key in, if nobody holds the key and that run is blocked. The caller has the advisory
-- locks of the keys. A run that somebody has locked is left to the repair, and no other is let in instead of it.
-- Answers the claimable runs it made, by queue: [[queue, priority, µs], …].
create function unblock_first(p_shard smallint, p_key text[], p_now timestamptz) returns jsonb language plpgsql as $f$
declare
  v_ids bigint[];
  v_claimable jsonb;
begin
  v_ids := array(
    select l.id from unnest(p_key) k(key)
    cross join lateral first_of_key(p_shard, k.key, p_now) f
    cross join lateral (select r.id from runs r where r.shard = p_shard and r.id = f.id and r.hold = 1
      limit 1 for no key update skip locked) l
    where f.hold = 1
      and not is_key_held(p_shard, k.key));
  if cardinality(v_ids) = 0 then
    return '[]';
  end if;
  with freed as (
    update runs r set hold = 0
    from (select p_shard as shard, u.id from unnest(v_ids) u(id) limit cardinality(v_ids)) v
    where r.shard = v.shard and r.id = v.id and (r.hold = 1) is true
    returning r.queue, r.priority, r.eligible_at)
  select jsonb_agg(g.entry) into v_claimable
  from (select jsonb_build_array(f.queue, min(f.priority), (extract(epoch from min(f.eligible_at)) * 1000000)::bigint) as entry
    from freed f group by f.queue) g;
  return coalesce(v_claimable, '[]');
end $f$;

-- After runs of these keys were let go, or left the line: lets the next of each in. Takes the locks of the keys in one
-- order, after all row locks; a key that stays locked too long is left to the repair (1 s), and nothing else is lost.
create function free_keys(p_shard smallint, p_key text[], p_now timestamptz) returns jsonb language plpgsql as $f$
declare
  v_lock bigint;
begin
  for v_lock in select distinct key_lock(p_shard, k.key) as lock from unnest(p_key) k(key) where k.key is not null order by lock loop
    perform pg_advisory_xact_lock(v_lock);
  end loop;
  return unblock_first(p_shard, array(select distinct k.key from unnest(p_key) k(key) where k.key is not null), p_now);
exception when lock_not_available then
  return '[]';
end $f$;
