-- pawl: call
-- Tells one transaction from another: the server process and when the transaction began. After
-- COMMIT AND CHAIN, ROLLBACK AND CHAIN, or a COMMIT or ROLLBACK and another BEGIN it is another,
-- also behind a pooler. Read with BEGIN, compared by require_transaction.
create or replace function transaction_mark() returns text language plpgsql stable as $f$
begin
  return pg_catalog.pg_backend_pid() || '/' || extract(epoch from pg_catalog.transaction_timestamp());
end $f$;

-- Before an outcome is written in a transaction that user code wrote in: it must be the one that
-- Pawl began (p_mark). From here on the server ends it when its client says nothing for 10 seconds:
-- a client that has vanished must not keep the run locked.
create or replace function require_transaction(p_mark text) returns boolean language plpgsql as $f$
begin
  if transaction_mark() <> p_mark then
    raise exception 'this is not the transaction that Pawl began' using errcode = 'PW412';
  end if;
  perform set_config('idle_in_transaction_session_timeout', '10s', true);
  return true;
end $f$;
