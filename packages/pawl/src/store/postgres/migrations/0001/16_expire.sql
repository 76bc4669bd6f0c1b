-- What queues of messages need again and again; part of recover, and of every receiver that waits. Messages whose visibility has ended
-- are visible again, in the place they had: their receipt counts until another receives them. Groups that have blocked messages and none in flight let
-- their first in (repair_keys). Publications whose dedup keys have had their time are deleted,
-- unless the database is held. At most p_limit of each.
-- p_marks is what the last call answered as `marks`. `queues` got visible messages, as JSON. Never waits for a lock. Rides runs_receipts
-- from a little before the last look on: an old transaction keeps an entry there for every message that was acked since; what was
-- committed later than that is found by the look over everything, once a minute.
create function expire(p_shard smallint, p_limit int, p_marks text) returns table (expired int, queues text, marks text)
language plpgsql as $f$
declare
  c_late constant interval := '5 seconds';
  c_keys constant int := 200;
  v_shard smallint := ~p_shard;
  v_now timestamptz := now();
  v_clock timestamptz := clock_timestamp();
  v_marks jsonb := coalesce(p_marks::jsonb, '{}');
  v_looked timestamptz := timestamptz 'epoch' + (v_marks ->> 'looked')::bigint * interval '1 microsecond';
  v_after timestamptz := '-infinity';
  v_due bigint[];
  v_ids bigint[];
  v_ended record;
  v_keys text[];
  v_repaired record;
begin
  perform require_read_committed();
  if date_trunc('minute', v_looked) = date_trunc('minute', v_clock) then
    v_after := v_looked - c_late;
  end if;
  v_due := array(select r.id from runs r
    where r.shard = v_shard and r.lease_expires_at >= v_after and r.lease_expires_at <= v_clock
    order by r.lease_expires_at limit p_limit);
  v_ids := array(select l.id from (select u.id from unnest(v_due) u(id) order by u.id) v
    cross join lateral (select r.id from runs r
      where r.shard = v_shard and r.id = v.id and (r.lease_expires_at <= v_clock) is true
      limit 1 for no key update skip locked) l);
  v_ended := end_visibility(v_shard, v_ids, v_now);
  expired := v_ended.ended;
  queues := v_ended.queues;
  -- what was locked, or is more than p_limit, is looked for again
  if v_ended.ended = cardinality(v_due) and cardinality(v_due) < p_limit then
    v_marks := v_marks || jsonb_build_object('looked', to_us(v_clock));
  else
    v_marks := v_marks - 'looked';
  end if;
  if expired = 0 then
    select k.last, k.queues into v_repaired from repair_keys(v_shard, v_marks ->> 'key', c_keys) k;
    queues := v_repaired.queues;
    v_marks := v_marks || jsonb_build_object('key', v_repaired.last);
    if not is_held() then
      v_ids := array(select r.id from runs r where r.shard = v_shard and r.expires_at <= v_now
        order by r.expires_at limit p_limit for update skip locked);
      delete from runs r using (select v_shard as shard, u.id from unnest(v_ids) u(id) limit p_limit) v
        where r.shard = v.shard and r.id = v.id;
    end if;
  end if;
  marks := v_marks::text;
  return next;
end $f$;

-- The messages p_id, which the caller has locked, are visible again. All at once; if one cannot be written, each by itself, and that
-- one is left and reported. Whoever is first of their groups is let in, unless another transaction is deciding about the group.
create function end_visibility(p_shard smallint, p_id bigint[], p_now timestamptz, out ended int, out queues text)
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
        from (select p_shard as shard, u.id from unnest(v_batch) u(id) limit cardinality(v_batch)) v
        where r.shard = v.shard and r.id = v.id and (r.lease_expires_at is not null) is true
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
    from (select u.key, pg_try_advisory_xact_lock(key_lock(p_shard, u.key)) as mine from (select distinct a.key from unnest(v_keys) a(key)) u) k;
    if v_left is not null then
      perform leave_keys(p_shard, v_left);
    end if;
    if v_keys is not null then
      perform unblock_first(p_shard, v_keys, p_now);
    end if;
  end if;
end $f$;
