-- pawl: inner
-- The messages p_id, which the caller has locked, are visible again. All at once; if one cannot be written, each by itself, and that
-- one is left and reported. Whoever is first of their groups is let in, unless another transaction is deciding about the group.
create or replace function end_visibility(p_id bigint[], p_now timestamptz, out ended int, out queues text)
language plpgsql as $f$
declare
  v_batch bigint[];
  v_keys text[];
  v_left text[];
  v_queues jsonb := '[]';
  v_one record;
begin
  ended := 0;
  for v_try in 1 .. 1 + cardinality(p_id) loop
    -- first all of them, then one after the other
    v_batch := case when v_try = 1 then p_id else p_id[v_try - 1 : v_try - 1] end;
    begin
      with shown as (
        update runs r set status = 'runnable', lease_expires_at = null
        from (select u.id from unnest(v_batch) u(id) limit cardinality(v_batch)) v
        where r.id = v.id and (r.lease_expires_at is not null) is true
        returning r.queue, r.partition_key)
      select count(*) as n, coalesce(jsonb_agg(distinct s.queue), '[]') as queues,
        array_agg(s.partition_key) filter (where s.partition_key is not null) as keys
      into v_one from shown s;
      ended := ended + v_one.n;
      v_queues := v_queues || v_one.queues;
      v_keys := v_keys || v_one.keys;
      exit when v_try = 1;
    exception when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
      if v_try > 1 then
        raise warning 'pawl: message % cannot be made visible again: %', v_batch[1], sqlerrm;
      end if;
    end;
  end loop;
  queues := v_queues::text;
  if v_keys is not null then
    select array_agg(k.key) filter (where k.mine), array_agg(k.key) filter (where not k.mine) into v_keys, v_left
    from (select u.key, pg_try_advisory_xact_lock(key_lock(u.key)) as mine from (select distinct a.key from unnest(v_keys) a(key)) u) k;
    if v_left is not null then
      perform leave_keys(v_left);
    end if;
    if v_keys is not null then
      perform unblock_first(v_keys, p_now);
    end if;
  end if;
end $f$;
