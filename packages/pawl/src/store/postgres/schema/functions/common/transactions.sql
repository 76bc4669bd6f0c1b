-- pawl: call
-- Identifies a transaction: the server process and the time when the transaction began. The mark
-- changes after COMMIT AND CHAIN, ROLLBACK AND CHAIN, or a COMMIT or ROLLBACK and another BEGIN,
-- also behind a pooler. The worker reads it with BEGIN.
create or replace function transaction_mark() returns text language plpgsql stable as $f$
begin
  return pg_catalog.pg_backend_pid() || '/' || extract(epoch from pg_catalog.transaction_timestamp());
end $f$;

-- Raises unless this is still the transaction that Pawl began (p_mark). Called before an outcome is
-- written in a transaction that user code wrote in.
-- From here on the server ends the transaction if its client says nothing for 10 seconds: a client
-- that has vanished must not keep the run locked.
create or replace function require_transaction(p_mark text) returns boolean language plpgsql as $f$
begin
  if transaction_mark() <> p_mark then
    raise exception 'this is not the transaction that Pawl began: do not commit, roll back or begin in it' using errcode = 'PW412';
  end if;
  perform set_config('idle_in_transaction_session_timeout', '10s', true);
  return true;
end $f$;
