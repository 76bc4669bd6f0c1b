-- pawl: inner
-- Times that may be computed with: whatever a row holds, no conversion fails. A run is put off no further than to the end
-- of the year 9998, and nothing is reckoned from before 1700. What is told as microseconds, which must be exact in
-- JavaScript, ends in 2250.
create or replace function within_reach(p_at timestamptz) returns timestamptz language sql immutable as $$
  select case when p_at is not null then greatest(least(p_at, timestamptz '9998-12-31 00:00:00Z'), timestamptz '1700-01-01 00:00:00Z') end
$$;

create or replace function later(p_at timestamptz, p_seconds double precision) returns timestamptz language sql immutable as $$
  select within_reach(within_reach(p_at) + greatest(least(p_seconds, 3e11), -4e10) * interval '1 second')
$$;

create or replace function to_us(p_at timestamptz) returns bigint language sql immutable as $$
  select case when p_at is not null then (extract(epoch from least(within_reach(p_at), timestamptz '2250-01-01 00:00:00Z')) * 1000000)::bigint end
$$;

create or replace function ms_until(p_at timestamptz, p_now timestamptz) returns double precision language sql immutable as $$
  select extract(epoch from within_reach(p_at) - within_reach(p_now))::double precision * 1000
$$;

-- Refuses times that cannot be reckoned with.
create or replace function require_time(p_what text, p_at timestamptz) returns void language plpgsql as $f$
begin
  if p_at <> within_reach(p_at) then
    raise exception '% must be a time from 1700 to 9998, not %', p_what, p_at
      using errcode = 'PW422', hint = 'Leave it out to begin at once. To wait without a limit, await a signal.';
  end if;
end $f$;

-- Refuses durations that are negative or infinite. (Compared with text: infinite intervals are none before PostgreSQL 17.)
create or replace function require_delay(p_what text, p_delay interval) returns void language plpgsql as $f$
begin
  if p_delay < interval '0' or p_delay > interval '1000 years' or p_delay::text like '%infinity' then
    raise exception '% must not be negative and not longer than 1000 years, not %', p_what, p_delay using errcode = 'PW422';
  end if;
end $f$;

-- ISO 8601 with microseconds, whatever the session's DateStyle.
create or replace function iso(p_at timestamptz) returns text language sql stable as $$ select to_jsonb(p_at) #>> '{}' $$;
