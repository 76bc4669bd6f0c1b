-- pawl: inner
-- Partition keys, for claim and receive: answers those of the runs p_id, in order, that the caller
-- may take. The caller has locked the runs; p_key are their keys. A run without a key may always be
-- taken. A run with a key may be taken only if no run holds the key and it is the first due run of
-- the key, locked or not. (SKIP LOCKED alone would break the order.)
-- The claim is the lock of the key. The advisory lock only makes one transaction at a time look at
-- a key. The caller took it before it locked the runs, so that a transaction that frees a key never
-- finds its first run locked by a claim that came too late. Here it is tried again for runs that
-- got another key since.
-- It blocks the other runs of a key (hold bit 1), with up to 1,000 siblings behind them. They leave
-- the claim index until free_keys lets them in one by one. Rides runs_active_key and runs_keyed.
create or replace function claim_keyed(
  p_id bigint[], p_key text[], p_now timestamptz, out allowed bigint[], out contended boolean)
language plpgsql as $f$
declare
  v_mine text[];
begin
  v_mine := array(select k.key from unnest(p_key) k(key) where pg_try_advisory_xact_lock(key_lock(k.key)));
  contended := cardinality(v_mine) < cardinality(p_key);

  -- in a statement of its own: the last holder of the lock has committed before it begins
  allowed := array(
    select u.id from unnest(p_id) with ordinality u(id, o)
    cross join lateral (select t.partition_key, t.priority, t.eligible_at from runs t where t.id = u.id limit 1) r
    where r.partition_key is null
      or r.partition_key = any (v_mine)
        and not is_key_held(r.partition_key)
        and first_of_key(r.partition_key, p_now) = u.id
    order by u.o);

  if cardinality(allowed) < cardinality(p_id) then
    update runs r set hold = r.hold | 1
    from (select u.id from unnest(p_id) u(id) where u.id <> all (allowed) limit cardinality(p_id)) v
    where r.id = v.id and (r.partition_key = any (v_mine)) is true;
    -- the siblings behind them, so that no claim has to walk over these
    update runs r set hold = r.hold | 1
    from (select behind.id from (
        select distinct on (t.partition_key, t.queue, t.name, t.version)
          t.partition_key, t.queue, t.name, t.version, t.priority, t.eligible_at, t.id from unnest(p_id) u(id)
        cross join lateral (select r.* from runs r where r.id = u.id limit 1) t
        where t.partition_key = any (v_mine)
        order by t.partition_key, t.queue, t.name, t.version, t.priority desc, t.eligible_at desc, t.id desc) last
      cross join lateral (
        select walked.id from (
          select t.id, t.hold, t.eligible_at from runs t
          where t.partition_key = last.partition_key
            and t.queue = last.queue and t.name = last.name and t.version = last.version
            and case when t.status in ('runnable', 'awaiting_signal') then (t.hold & 14) = 0 else false end
            and (t.priority, t.eligible_at, t.id) > (last.priority, last.eligible_at, last.id)
          order by t.priority, t.eligible_at, t.id limit 1000) walked
        where walked.hold = 0 and walked.eligible_at <= p_now) behind
      cross join lateral (select 1 from runs t where t.id = behind.id and t.hold = 0
        limit 1 for no key update skip locked) locked
      limit 1000) v
    where r.id = v.id and (r.status in ('runnable', 'awaiting_signal')) is true;
    perform unblock_first(v_mine, p_now);
  end if;
end $f$;
