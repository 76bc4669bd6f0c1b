-- pawl: inner
-- Guards that other functions share.

-- Raises unless the transaction is READ COMMITTED: functions that decide rely on a fresh snapshot
-- per statement.
-- The message names the setting to change. The setting of a role in a database overrides those of
-- the role, the database and the server.
create or replace function require_read_committed() returns void language plpgsql as $f$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'pawl decides under READ COMMITTED only, and this transaction is %. %', upper(current_setting('transaction_isolation')),
      case when current_setting('default_transaction_isolation') = 'read committed' then 'Begin it with: begin isolation level read committed'
        else 'Run this once as the same role, with the name of the database, and connect again: '
          'alter role current_user in database <name> set default_transaction_isolation = ''read committed''' end
      using errcode = 'invalid_transaction_state',
            hint = 'The options of the URL and PGOPTIONS override the settings of the role: remove default_transaction_isolation there.';
  end if;
end $f$;

-- Makes this commit wait for the disk, even where a role has synchronous_commit off: an
-- acknowledged write must survive a crash.
create or replace function require_durable_commit() returns void language plpgsql as $f$
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end $f$;

-- Whether an error concerns one row alone. Then the caller must try the others of the batch without
-- it. Such an error is about the values of the row (21, 22, 23, 27, 44, 54), a check of Pawl (PW),
-- a `raise` of a user's trigger (P0001), or the lock of the row (55P03, answered as busy).
-- This lists the known faults of a row. Any other error (connections, resources, shutdown,
-- deadlock, a missing right, a read-only server) concerns the whole call. The caller repeats that
-- call and charges it to no run.
create or replace function is_row_fault(p_sqlstate text) returns boolean language sql immutable as $$
  select left(p_sqlstate, 2) in ('21', '22', '23', '27', '44', '54', 'PW') or p_sqlstate in ('P0001', '55P03')
$$;
