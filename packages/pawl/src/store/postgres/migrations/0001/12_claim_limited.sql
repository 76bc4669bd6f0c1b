-- Rate limits, for claim: of the runs p_id, which claim has locked, those it may take, in the same order. One without a limit
-- may always be taken; one with a limit takes its weight out of the bucket, or is put off (throttled) to when its tokens
-- will be there, behind those that were put off before it (promised_at). Who comes new while tokens are promised to others
-- queues behind them, unless the bucket is full: then nobody came for them.
-- A bucket that another claim has at hand is not waited for (contended). `freed` are the keys whose first run was put off.
create function claim_limited(
  p_shard smallint, p_id bigint[], p_now timestamptz, out allowed bigint[], out freed text[], out contended boolean)
language plpgsql as $f$
declare
  v_run record;
  v_limit record;
  v_bucket record;
  v_access text;             -- to the bucket at hand: 'mine', 'busy' or 'unlimited'
  v_known text;              -- the rate limit at hand; null: none yet
  v_tokens double precision;
  v_promised timestamptz;
  v_rate double precision;   -- tokens per second
  v_need double precision;
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
      from runs t where t.shard = p_shard and t.id = u.id limit 1) r
    where r.rate_limit is not null
    order by r.rate_limit, u.o
  loop
    if v_run.rate_limit is distinct from v_known then
      if v_access = 'mine' then
        update buckets b set tokens = v_tokens, updated_at = p_now, promised_at = v_promised
          where b.shard = p_shard and b.name = v_bucket.name and b.key = v_bucket.key;
      end if;
      v_known := v_run.rate_limit;
      v_access := 'unlimited';
      select l.* into v_limit from limits l where l.name = v_run.name;
      if found then
        insert into buckets (shard, name, key, tokens, updated_at, promised_at)
          values (p_shard, v_run.name, v_run.key, v_limit.burst, p_now, p_now) on conflict do nothing;
        select b.* into v_bucket from buckets b
          where b.shard = p_shard and b.name = v_run.name and b.key = v_run.key for update skip locked;
        v_access := case when found then 'mine' else 'busy' end;
        v_rate := v_limit.allowed / extract(epoch from v_limit.period);
        v_tokens := least(v_limit.burst,
          v_bucket.tokens + greatest(extract(epoch from p_now - v_bucket.updated_at), 0) * v_rate);
        v_promised := v_bucket.promised_at;
      end if;
    end if;
    v_need := least(v_run.weight, v_limit.burst);
    if v_access = 'busy' then
      contended := true;
    elsif v_access = 'unlimited' then
      v_taken := v_taken || v_run.id;
    elsif v_tokens + 1e-6 >= v_need and (v_run.throttled or v_promised <= p_now or v_tokens + 1e-6 >= v_limit.burst) then
      v_tokens := v_tokens - v_need;
      v_taken := v_taken || v_run.id;
    else
      -- the first in line has what is left in the bucket
      if v_promised <= p_now then
        v_promised := p_now - v_tokens / v_rate * interval '1 second';
      end if;
      v_promised := v_promised + v_need / v_rate * interval '1 second' + interval '1 microsecond';
      v_off := v_off || v_run.id;
      v_off_at := v_off_at || v_promised;
      freed := freed || v_run.partition_key;
    end if;
  end loop;
  if v_access = 'mine' then
    update buckets b set tokens = v_tokens, updated_at = p_now, promised_at = v_promised
      where b.shard = p_shard and b.name = v_bucket.name and b.key = v_bucket.key;
  end if;

  update runs r set throttled = true, eligible_at = v.at
  from (select p_shard as shard, u.id, u.at from unnest(v_off, v_off_at) u(id, at) limit cardinality(v_off)) v
  where r.shard = v.shard and r.id = v.id and (r.status in ('runnable', 'awaiting_signal')) is true;
  allowed := array(
    select u.id from unnest(p_id) with ordinality u(id, o)
    cross join lateral (select t.rate_limit from runs t where t.shard = p_shard and t.id = u.id limit 1) r
    where r.rate_limit is null or u.id = any (v_taken)
    order by u.o);
  freed := array_remove(freed, null);
end $f$;
