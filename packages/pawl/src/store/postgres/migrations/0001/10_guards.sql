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
