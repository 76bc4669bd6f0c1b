-- pawl: inner
-- Guards that the other functions share.

-- Deciding functions rely on a fresh snapshot per statement. Says how to get there: the setting of a role in a database goes before
-- those of the role, the database and the server.
create or replace function require_read_committed() returns void language plpgsql as $f$
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
create or replace function require_durable_commit() returns void language plpgsql as $f$
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
create or replace function is_row_fault(p_sqlstate text) returns boolean language sql immutable as $$
  select left(p_sqlstate, 2) in ('21', '22', '23', '27', '44', '54', 'PW') or p_sqlstate in ('P0001', '55P03')
$$;
