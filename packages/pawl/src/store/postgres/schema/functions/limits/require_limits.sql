-- pawl: inner
-- Raises on unknown rate limits, on limits without a rate, and on weights that their limit can never let through. A rate
-- limit is written `limit` or `limit:key`; names of limits have no colon.
create or replace function require_limits(p_rate_limit text[], p_weight int[]) returns void language plpgsql as $f$
declare
  v_bad record;
begin
  select split_part(u.rate_limit, ':', 1) as name, coalesce(u.weight, 1) as weight, l.burst, l.concurrent into v_bad
  from unnest(p_rate_limit, p_weight) u(rate_limit, weight)
  left join lateral (select t.burst, t.concurrent from limits t where t.name = split_part(u.rate_limit, ':', 1) limit 1) l on true
  where u.rate_limit is not null and (l.burst is null or coalesce(u.weight, 1) > l.burst)
  limit 1;
  if not found then
    return;
  end if;
  if v_bad.concurrent is not null and v_bad.burst is null then
    raise exception 'the limit "%" has no rate, only concurrent; name it with the option concurrency, or set a rate', v_bad.name using errcode = 'PW422';
  elsif v_bad.burst is null then
    raise exception 'there is no rate limit "%"; set it with serve(…, { limits }) or pawl.limits.set', v_bad.name using errcode = 'PW422';
  end if;
  raise exception 'weight % is more than the burst of the rate limit "%", which is %: the run could never start; lower the weight or raise the burst',
    v_bad.weight, v_bad.name, v_bad.burst using errcode = 'PW422';
end $f$;

-- Raises on unknown concurrency limits, on limits without `concurrent`, and on keys that are too
-- long. Written like a rate limit.
create or replace function require_concurrency(p_concurrency text[]) returns void language plpgsql as $f$
declare
  v_bad record;
begin
  select split_part(u.concurrency, ':', 1) as name, octet_length(u.concurrency) as bytes, l.name is not null as is_known into v_bad
  from unnest(p_concurrency) u(concurrency)
  left join lateral (select t.name, t.concurrent from limits t where t.name = split_part(u.concurrency, ':', 1) limit 1) l on true
  where u.concurrency is not null and (l.concurrent is null or octet_length(u.concurrency) > 512)
  limit 1;
  if not found then
    return;
  end if;
  if v_bad.bytes > 512 then
    raise exception 'the key of the concurrency limit is too long: shorten it, limit and key have at most 512 bytes together'
      using errcode = 'PW422';
  elsif v_bad.is_known then
    raise exception 'the limit "%" has no concurrent: set how many runs may execute at once, such as pawl.limits.set(''%'', { concurrent: 3 })',
      v_bad.name, v_bad.name using errcode = 'PW422';
  end if;
  raise exception 'there is no concurrency limit "%"; set it with serve(…, { limits }) or pawl.limits.set', v_bad.name using errcode = 'PW422';
end $f$;
