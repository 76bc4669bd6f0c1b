-- pawl: inner
-- Every function calls this before it writes for a claim. The transaction must be READ COMMITTED: a
-- decision needs a fresh snapshot per statement. What is acknowledged must be on disk. After a
-- failover, the claims on workflows end first (begin_timeline); answers false if that is not done yet
-- and the caller must not wait for it (p_patient is false), as in a transaction of a user.
create or replace function begin_write(p_patient boolean) returns boolean language plpgsql as $f$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform require_read_committed();
  end if;
  if current_setting('synchronous_commit') = 'off' then
    perform require_durable_commit();
  end if;
  if timeline() <> (select s.timeline from settings s where s.only_row) then
    if not p_patient then
      return false;
    end if;
    perform begin_timeline();
  end if;
  return true;
end $f$;
