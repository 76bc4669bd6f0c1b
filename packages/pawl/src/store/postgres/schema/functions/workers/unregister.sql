-- pawl: call; lock_timeout 100ms
-- Removes a worker that has stopped. From here on no claim gets anything for it and nothing is
-- handed over to it. Its claims end, and its row is deleted. Answers how many runs it still holds
-- because another transaction has them locked: the worker then calls again. If it does not, the
-- reaper ends those claims and deletes the row.
-- Locks the worker's row, then the runs in id order with SKIP LOCKED.
create or replace function unregister(p_worker text) returns int language plpgsql as $f$
declare
  v_held bigint[];
begin
  perform require_read_committed();
  update workers w set serves = '{}', queues = '{}' where w.id = p_worker;
  v_held := array(select r.id from runs r where r.locked_by = p_worker);
  if cardinality(v_held) > 0 then
    perform end_claims(array(
      select l.id from (select u.id from unnest(v_held) u(id) order by u.id) v
      cross join lateral (select r.id from runs r where r.id = v.id and (r.locked_by = p_worker) is true
        limit 1 for no key update skip locked) l), 0);
    v_held := array(select r.id from runs r where r.locked_by = p_worker);
  end if;
  if cardinality(v_held) = 0 then
    delete from workers w where w.id = p_worker;
  end if;
  return cardinality(v_held);
end $f$;
