-- pawl: inner
-- What the functions that deal with partition keys share.

-- The advisory lock of a key, taken for the rest of a transaction that claims or frees it.
create or replace function key_lock(p_key text) returns bigint language sql immutable as $$
  select hashtextextended(p_key, 1885435756)
$$;

-- Takes the advisory lock of a key for the rest of the transaction; false if it was not to be had within lock_timeout. Waits in
-- a subtransaction of its own, only if it must.
create or replace function lock_key(p_lock bigint) returns boolean language plpgsql as $f$
begin
  if pg_try_advisory_xact_lock(p_lock) then
    return true;
  end if;
  begin
    perform pg_advisory_xact_lock(p_lock);
    return true;
  exception when lock_not_available then
    return false;
  end;
end $f$;

-- Whether a run holds the key: executing, or cancelled and not let go yet. Rides runs_active_key. (A function, because the
-- planner would make one hash table of all holders out of an EXISTS.)
create or replace function is_key_held(p_key text) returns boolean language plpgsql stable as $f$
begin
  perform 1 from runs h where h.partition_key = p_key
    and (h.locked_by is not null or h.lease_expires_at is not null);
  return found;
end $f$;
