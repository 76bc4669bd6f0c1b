-- pawl: inner
create or replace function tokens_per_second(p_allowed double precision, p_period interval) returns double precision language sql immutable as $$
  select p_allowed / extract(epoch from p_period)::double precision
$$;

-- Refuses limits that could let nothing through within a year.
create or replace function require_limit(p_name text, p_allowed double precision, p_period interval, p_burst double precision) returns void
language plpgsql as $f$
begin
  if p_allowed > 0 and p_allowed <= 1e9 and p_burst >= 1 and p_burst <= 1e9 and p_period > interval '0'
      and tokens_per_second(p_allowed, p_period) * 31622400 >= 1 then
    return;
  end if;
  raise exception 'the limit "%" allows % per %, with a burst of %: it must allow at least 1 in 366 days, and at most 1,000,000,000 at once',
    p_name, p_allowed, p_period, p_burst
    using errcode = 'PW422', hint = 'Raise allowed, or shorten period.';
end $f$;
