-- pawl: call
-- Repair, part of recover and expire: lets in the first run of keys that have blocked runs and no
-- holder.
-- First it takes up to p_limit keys from keys_to_repair, whatever other keys have blocked runs.
-- Then it takes up to p_limit keys after p_after by a skip scan over runs_blocked: a run may also
-- lose its place in line when the workers that serve it die.
-- Answers how many keys it looked at, where it stopped (null: at the end), the queues that got work
-- as JSON, and whether more keys are left. Waits for no lock: a key that another transaction
-- decides about stays for later.
create or replace function repair_keys(p_after text, p_limit int)
returns table (looked int, last text, queues text, is_left boolean)
language plpgsql as $f$
declare
  v_now timestamptz := clock();
  v_left bigint[];
  v_keys text[];
  v_claimable jsonb := '[]';
begin
  perform require_read_committed();
  -- reads more rows than it lets in: a key may appear many times, and locked keys stay
  select array_agg(l.id), array_agg(distinct l.partition_key) into v_left, v_keys from (
    select k.id, k.partition_key from keys_to_repair k order by k.id limit 10 * p_limit for update skip locked) l;
  looked := coalesce(cardinality(v_keys), 0);
  is_left := coalesce(cardinality(v_left), 0) = 10 * p_limit;
  if v_keys is not null then
    v_keys := array(select k.key from unnest(v_keys) k(key) where pg_try_advisory_xact_lock(key_lock(k.key)) limit p_limit);
    is_left := is_left or cardinality(v_keys) = p_limit;
    delete from keys_to_repair k where k.id = any (v_left) and k.partition_key = any (v_keys);
    -- notes a key again if its first run is locked
    v_claimable := unblock_first(v_keys, v_now);
  end if;

  v_keys := array(
    with recursive blocked(key, n) as (
        (select r.partition_key, 1 from runs r where (r.hold & 1) <> 0 and r.partition_key > coalesce(p_after, '')
          order by r.partition_key limit 1)
      union all
        select (select r.partition_key from runs r where (r.hold & 1) <> 0 and r.partition_key > blocked.key
          order by r.partition_key limit 1), blocked.n + 1
        from blocked where blocked.key is not null and blocked.n < p_limit)
    select b.key from blocked b where b.key is not null);
  looked := looked + cardinality(v_keys);
  last := case when cardinality(v_keys) = p_limit then v_keys[p_limit] end;
  -- two statements: in one, the planner would take the locks first, because that is cheaper
  v_keys := array(select k.key from unnest(v_keys) k(key) where not is_key_held(k.key));
  v_keys := array(select k.key from unnest(v_keys) k(key) where pg_try_advisory_xact_lock(key_lock(k.key)));
  v_claimable := v_claimable || unblock_first(v_keys, v_now);
  queues := to_jsonb(array(select distinct e.value ->> 0 from jsonb_array_elements(v_claimable) e))::text;
  return next;
end $f$;
