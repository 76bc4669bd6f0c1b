-- pawl: inner
-- Pieces that the functions for partition keys and concurrency limits share.

-- The number of a key's advisory lock. A transaction that claims or frees the key holds it until
-- its end.
create or replace function key_lock(p_key text) returns bigint language sql immutable as $$
  select hashtextextended(p_key, 1885435756)
$$;

-- Takes the advisory lock of a key for the rest of the transaction. Answers false if it does not
-- get it within lock_timeout. Waits in a subtransaction of its own, only if it must.
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

-- Takes the advisory locks of keys in one order, after all row locks. Passes over null keys. `mine`
-- are the keys that it has; `busy` those that stayed locked longer than lock_timeout: from the first
-- of them on this waits for no other. p_prefix tells keys of concurrency limits from partition keys.
create or replace function lock_keys(p_key text[], p_prefix text, out mine text[], out busy text[]) language plpgsql as $f$
declare
  v_key record;
begin
  mine := '{}';
  busy := '{}';
  for v_key in select k.key, k.lock from (select distinct u.key, key_lock(p_prefix || u.key) as lock from unnest(p_key) u(key)
    where u.key is not null) k order by k.lock loop
    if pg_try_advisory_xact_lock(v_key.lock) or busy = '{}' and lock_key(v_key.lock) then
      mine := mine || v_key.key;
    else
      busy := busy || v_key.key;
    end if;
  end loop;
end $f$;

-- Whether a run holds the key: an executing run, or one that was ended from outside and whose claim
-- has not ended.
-- Rides runs_active_key. A function, because the planner would turn an EXISTS into a hash table of
-- all holders.
create or replace function is_key_held(p_key text) returns boolean language plpgsql stable as $f$
begin
  perform 1 from runs h where h.partition_key = p_key
    and (h.locked_by is not null or h.lease_expires_at is not null);
  return found;
end $f$;
