-- Guards that the other functions share.

-- Deciding functions rely on a fresh snapshot per statement.
create function require_read_committed() returns void language plpgsql as $f$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'pawl decides under READ COMMITTED only, this transaction is %', upper(current_setting('transaction_isolation'))
      using errcode = 'invalid_transaction_state',
            hint = 'Remove default_transaction_isolation from the role or database that Pawl connects with.';
  end if;
end $f$;

-- What is acknowledged must be on disk, also where a role has synchronous_commit off.
create function require_durable_commit() returns void language plpgsql as $f$
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end $f$;

-- Whether an error is the fault of one row, so that the others of its batch must be tried without it; else it is the
-- server's (connections, resources, shutdown, deadlock) and concerns the call as a whole.
create function is_row_fault(p_sqlstate text) returns boolean language sql immutable as $$
  select left(p_sqlstate, 2) not in ('08', '25', '40', '53', '57', '58', 'XX')
$$;

-- Refuses names and keys that are too long. Here and not as a constraint of runs: it would be prepared anew for every
-- statement that writes a run, a tenth of the time of a single commit.
create function require_names(
  p_name text[], p_queue text[], p_step text[], p_idempotency_key text[], p_unique_key bytea[], p_partition_key text[], p_rate_limit text[]
) returns void language plpgsql as $f$
declare
  v_what text;
begin
  select case when octet_length(u.name) > 256 then 'the name' when octet_length(u.queue) > 256 then 'the queue'
      when octet_length(u.step) > 256 then 'the step' when octet_length(u.idempotency_key) > 512 then 'the idempotency key'
      when octet_length(u.unique_key) > 512 then 'the unique key' when octet_length(u.partition_key) > 512 then 'the partition key'
      else 'the rate limit' end
  into v_what
  from unnest(p_name, p_queue, p_step, p_idempotency_key, p_unique_key, p_partition_key, p_rate_limit)
    u(name, queue, step, idempotency_key, unique_key, partition_key, rate_limit)
  where octet_length(u.name) > 256 or octet_length(u.queue) > 256 or octet_length(u.step) > 256
    or octet_length(u.idempotency_key) > 512 or octet_length(u.unique_key) > 512
    or octet_length(u.partition_key) > 512 or octet_length(u.rate_limit) > 512
  limit 1;
  if found then
    raise exception '% is too long: names have at most 256 bytes, keys 512', v_what using errcode = 'PW422';
  end if;
end $f$;

-- Times that may be computed with: whatever a row holds, no conversion fails. A run is put off no further than to the end
-- of the year 9998, and nothing is reckoned from before 1700. What is told as microseconds, which must be exact in
-- JavaScript, ends in 2250.
create function within_reach(p_at timestamptz) returns timestamptz language sql immutable as $$
  select case when p_at is not null then greatest(least(p_at, timestamptz '9998-12-31 00:00:00Z'), timestamptz '1700-01-01 00:00:00Z') end
$$;

create function later(p_at timestamptz, p_seconds double precision) returns timestamptz language sql immutable as $$
  select within_reach(within_reach(p_at) + greatest(least(p_seconds, 3e11), -4e10) * interval '1 second')
$$;

create function to_us(p_at timestamptz) returns bigint language sql immutable as $$
  select case when p_at is not null then (extract(epoch from least(within_reach(p_at), timestamptz '2250-01-01 00:00:00Z')) * 1000000)::bigint end
$$;

create function ms_until(p_at timestamptz, p_now timestamptz) returns double precision language sql immutable as $$
  select extract(epoch from within_reach(p_at) - within_reach(p_now))::double precision * 1000
$$;

-- Refuses times that cannot be reckoned with.
create function require_time(p_what text, p_at timestamptz) returns void language plpgsql as $f$
begin
  if p_at <> within_reach(p_at) then
    raise exception '% must be a time from 1700 to 9998, not %', p_what, p_at
      using errcode = 'PW422', hint = 'Leave it out to begin at once. To wait without a limit, await a signal.';
  end if;
end $f$;

-- Refuses durations that are negative or infinite. (Compared with text: infinite intervals are none before PostgreSQL 17.)
create function require_delay(p_what text, p_delay interval) returns void language plpgsql as $f$
begin
  if p_delay < interval '0' or p_delay > interval '1000 years' or p_delay::text like '%infinity' then
    raise exception '% must be from 0 to 1000 years long, not %', p_what, p_delay using errcode = 'PW422';
  end if;
end $f$;
