-- Guards that the other functions share.

-- Deciding functions rely on a fresh snapshot per statement. Says how to get there: the setting of a role in a database goes before
-- those of the role, the database and the server.
create function require_read_committed() returns void language plpgsql as $f$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'pawl decides under READ COMMITTED only, and this transaction is %. %', upper(current_setting('transaction_isolation')),
      case when current_setting('default_transaction_isolation') = 'read committed' then 'Begin it with: begin isolation level read committed'
        else 'Run this once as the same role, with the name of the database, and connect again: '
          'alter role current_user in database <name> set default_transaction_isolation = ''read committed''' end
      using errcode = 'invalid_transaction_state',
            hint = 'The options of the URL, or PGOPTIONS, go before the settings of the role: remove default_transaction_isolation there.';
  end if;
end $f$;

-- What is acknowledged must be on disk, also where a role has synchronous_commit off.
create function require_durable_commit() returns void language plpgsql as $f$
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end $f$;

-- Whether an error concerns one row alone, so that the others of its batch must be tried without
-- it: its values (21, 22, 23, 27, 44, 54), what Pawl itself says against them (PW), a `raise` of
-- somebody's trigger (P0001), or its lock (55P03, which is answered as busy). A list of what is
-- known to be a row's fault: anything else (connections, resources, shutdown, deadlock, a missing
-- right, a server that takes no writes) concerns the call as a whole, which is repeated and charged
-- to no run.
create function is_row_fault(p_sqlstate text) returns boolean language sql immutable as $$
  select left(p_sqlstate, 2) in ('21', '22', '23', '27', '44', '54', 'PW') or p_sqlstate in ('P0001', '55P03')
$$;

-- Tells one transaction from another: the server process and when the transaction began. After
-- COMMIT AND CHAIN, ROLLBACK AND CHAIN, or a COMMIT or ROLLBACK and another BEGIN it is another,
-- also behind a pooler. Read with BEGIN, compared by require_transaction.
create function transaction_mark() returns text language plpgsql stable as $f$
begin
  return pg_catalog.pg_backend_pid() || '/' || extract(epoch from pg_catalog.transaction_timestamp());
end $f$;

-- Before an outcome is written in a transaction that user code wrote in: it must be the one that
-- Pawl began (p_mark). From here on the server ends it when its client says nothing for 10 seconds:
-- a client that has vanished must not keep the run locked. Answers the shard, so that what follows
-- in the same statement depends on it.
create function require_transaction(p_shard smallint, p_mark text) returns smallint language plpgsql as $f$
begin
  if transaction_mark() <> p_mark then
    raise exception 'this is not the transaction that Pawl began' using errcode = 'PW412';
  end if;
  perform set_config('idle_in_transaction_session_timeout', '10s', true);
  return p_shard;
end $f$;

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

-- Whether a run can be claimed without a word about its unique key: it has none, or holds it. Not if it may find the key taken, nor if
-- it gave the key up when a signal, the end of a child, a release or the death of its worker made it enter its scope: such a run
-- still has its unique_scope, and the next claim tells of it (unique_lost) and takes that away. Inlined by the planner.
create function is_key_settled(p_key bytea, p_guard bytea, p_scope run_status[]) returns boolean language sql immutable as $$
  select case when p_key is null then p_scope is null else p_guard is not null end
$$;

-- Refuses names of signals or topics that are too long, whoever sends them.
create function require_short_names(p_what text, p_name text[]) returns void language plpgsql as $f$
declare
  v_name text;
begin
  select u.name into v_name from unnest(p_name) u(name) where octet_length(u.name) > 256 limit 1;
  if found then
    raise exception 'the name of a % has at most 256 bytes, not %: %…', p_what, octet_length(v_name), quote_literal(left(v_name, 60))
      using errcode = 'PW422';
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
    raise exception '% must not be negative and not longer than 1000 years, not %', p_what, p_delay using errcode = 'PW422';
  end if;
end $f$;
