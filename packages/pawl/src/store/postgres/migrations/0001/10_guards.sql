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
