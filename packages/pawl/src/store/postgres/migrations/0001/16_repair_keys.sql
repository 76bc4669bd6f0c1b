-- Repair, part of recover: keys that have blocked runs although nobody holds them let their first run in. Looks at up to
-- p_limit keys after p_after, a skip scan over runs_blocked, and answers how many there were, where it stopped (null: at the
-- end) and the queues that got work, as JSON. A key that another transaction is deciding about is left alone.
create function repair_keys(p_shard smallint, p_after text, p_limit int) returns table (looked int, last text, queues text)
language plpgsql as $f$
declare
  v_now timestamptz := now();
  v_keys text[];
begin
  perform require_read_committed();
  v_keys := array(
    with recursive blocked(key, n) as (
        (select r.partition_key, 1 from runs r where r.shard = p_shard and (r.hold & 1) <> 0 and r.partition_key > coalesce(p_after, '')
          order by r.partition_key limit 1)
      union all
        select (select r.partition_key from runs r where r.shard = p_shard and (r.hold & 1) <> 0 and r.partition_key > blocked.key
          order by r.partition_key limit 1), blocked.n + 1
        from blocked where blocked.key is not null and blocked.n < p_limit)
    select b.key from blocked b where b.key is not null);
  looked := cardinality(v_keys);
  last := case when cardinality(v_keys) = p_limit then v_keys[p_limit] end;
  -- in two statements: in one, the planner would take the locks first, since that is cheaper than to look
  v_keys := array(select k.key from unnest(v_keys) k(key) where not is_key_held(p_shard, k.key));
  v_keys := array(select k.key from unnest(v_keys) k(key) where pg_try_advisory_xact_lock(key_lock(p_shard, k.key)));
  queues := to_jsonb(array(select distinct e.value ->> 0 from jsonb_array_elements(unblock_first(p_shard, v_keys, v_now)) e))::text;
  return next;
end $f$;
