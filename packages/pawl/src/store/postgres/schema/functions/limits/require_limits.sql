-- pawl: inner
-- Refuses rate limits that nobody has set, and weights that their limit can never let through.
-- A rate limit is written `limit` or `limit:key`; names of limits have no colon.
create or replace function require_limits(p_rate_limit text[], p_weight int[]) returns void language plpgsql as $f$
declare
  v_bad record;
begin
  select split_part(u.rate_limit, ':', 1) as name, coalesce(u.weight, 1) as weight, l.burst into v_bad
  from unnest(p_rate_limit, p_weight) u(rate_limit, weight)
  left join lateral (select t.burst from limits t where t.name = split_part(u.rate_limit, ':', 1) limit 1) l on true
  where u.rate_limit is not null and (l.burst is null or coalesce(u.weight, 1) > l.burst)
  limit 1;
  if not found then
    return;
  end if;
  if v_bad.burst is null then
    raise exception 'there is no rate limit "%"; set it with serve(…, { limits }) or pawl.limits.set', v_bad.name using errcode = 'PW422';
  end if;
  raise exception 'weight % is more than the burst of the rate limit "%", which is %: it could never be let through',
    v_bad.weight, v_bad.name, v_bad.burst using errcode = 'PW422';
end $f$;
