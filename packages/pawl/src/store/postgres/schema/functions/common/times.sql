-- pawl: inner
-- Keeps a time within the range that Pawl computes with, so that no conversion fails, whatever a
-- row holds. The range is 1700 to the end of 9998.
create or replace function within_reach(p_at timestamptz) returns timestamptz language sql immutable as $$
  select case when p_at is not null then greatest(least(p_at, timestamptz '9998-12-31 00:00:00Z'), timestamptz '1700-01-01 00:00:00Z') end
$$;

-- A time plus seconds, kept within that range.
create or replace function later(p_at timestamptz, p_seconds double precision) returns timestamptz language sql immutable as $$
  select within_reach(within_reach(p_at) + greatest(least(p_seconds, 3e11), -4e10) * interval '1 second')
$$;

-- Microseconds since 1970, at most the year 2250: they must be exact in JavaScript.
create or replace function to_us(p_at timestamptz) returns bigint language sql immutable as $$
  select case when p_at is not null then (extract(epoch from least(within_reach(p_at), timestamptz '2250-01-01 00:00:00Z')) * 1000000)::bigint end
$$;

-- Milliseconds from p_now until p_at.
create or replace function ms_until(p_at timestamptz, p_now timestamptz) returns double precision language sql immutable as $$
  select extract(epoch from within_reach(p_at) - within_reach(p_now))::double precision * 1000
$$;

-- Raises on times outside of that range.
create or replace function require_time(p_what text, p_at timestamptz) returns void language plpgsql as $f$
begin
  if p_at <> within_reach(p_at) then
    raise exception '% must be a time from 1700 to 9998, not %', p_what, p_at
      using errcode = 'PW422', hint = 'Leave it out to begin at once. To wait without a limit, await a signal.';
  end if;
end $f$;

-- Raises on negative or infinite durations. Compares text, because PostgreSQL before 17 has no
-- infinite intervals.
create or replace function require_delay(p_what text, p_delay interval) returns void language plpgsql as $f$
begin
  if p_delay < interval '0' or p_delay > interval '1000 years' or p_delay::text like '%infinity' then
    raise exception '% must not be negative and not longer than 1000 years, not %', p_what, p_delay using errcode = 'PW422';
  end if;
end $f$;

-- ISO 8601 with microseconds, whatever the session's DateStyle.
create or replace function iso(p_at timestamptz) returns text language sql stable as $$ select to_jsonb(p_at) #>> '{}' $$;
