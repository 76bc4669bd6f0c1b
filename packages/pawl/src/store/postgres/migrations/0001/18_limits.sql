-- Sets a rate limit; the last writer wins. Answers whether it changed anything: then the runs that the old one put off are to
-- be brought forward (bring_forward).
create function set_limit(p_name text, p_allowed double precision, p_period_ms bigint, p_burst double precision) returns boolean
language plpgsql as $f$
declare
  v_now timestamptz := now();
  v_period interval := p_period_ms * interval '1 millisecond';
begin
  perform require_durable_commit();
  insert into limits as l (name, allowed, period, burst) values (p_name, p_allowed, v_period, p_burst)
  on conflict (name) do update set allowed = excluded.allowed, period = excluded.period, burst = excluded.burst
    where (l.allowed, l.period, l.burst) is distinct from (excluded.allowed, excluded.period, excluded.burst);
  if not found then
    return false;
  end if;
  update buckets b set promised_at = v_now where b.name = p_name;
  return true;
end $f$;

-- Runs that a rate limit put off are due now, up to p_limit of them: the changed limit decides about them again.
-- Rides runs_throttled; skips what is locked. Answers how many.
create function bring_forward(p_shard smallint, p_name text, p_limit int) returns int language plpgsql as $f$
declare
  v_now timestamptz := now();
  v_ids bigint[];
begin
  perform require_read_committed();
  v_ids := array(
    select t.id from runs t
    where t.shard = p_shard and t.throttled and (split_part(t.rate_limit, ':', 1) = p_name) is true
    order by t.rate_limit, t.eligible_at, t.id limit p_limit for no key update skip locked);
  update runs r set throttled = false, eligible_at = least(r.eligible_at, v_now)
  from (select p_shard as shard, u.id from unnest(v_ids) u(id) limit p_limit) v
  where r.shard = v.shard and r.id = v.id and (r.throttled) is true;
  return cardinality(v_ids);
end $f$;

create function list_limits() returns table (name text, allowed double precision, period_ms double precision, burst double precision)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query select l.name, l.allowed, (extract(epoch from l.period) * 1000)::double precision, l.burst from limits l order by l.name;
end $f$;
