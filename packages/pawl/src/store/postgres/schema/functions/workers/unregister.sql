-- pawl: call; lock_timeout 100ms
-- A worker that has stopped: no claim that begins after this gets anything for it, nothing more is handed over to it, what it still
-- holds is let go, and its row is taken away. Answers how many runs it holds nevertheless, because somebody has them locked: to be
-- called again. If it is not, the reaper ends those claims, and takes the row away.
create or replace function unregister(p_worker text) returns int language plpgsql as $f$
declare
  v_held bigint[];
begin
  perform require_read_committed();
  update workers w set serves = '{}', queues = '{}' where w.id = p_worker;
  v_held := array(select r.id from runs r where r.locked_by = p_worker);
  if cardinality(v_held) > 0 then
    perform let_go(array(
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
