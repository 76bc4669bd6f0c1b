-- A worker that has stopped: nothing more is claimed for it or handed over to it, what it still holds is let go, and its row is
-- taken away. Answers how many runs it holds nevertheless, because somebody has them locked: to be called again. If it is not,
-- the reaper ends those claims, and takes the row away.
create function unregister(p_shard smallint, p_worker text) returns int language plpgsql as $f$
declare
  v_held int;
begin
  perform require_read_committed();
  update workers w set serves = '{}', queues = '{}' where w.id = p_worker;
  perform let_go(p_shard, array(
    select l.id from (select r.id from runs r where r.shard = p_shard and r.locked_by = p_worker order by r.id) v
    cross join lateral (select r.id from runs r where r.shard = p_shard and r.id = v.id and r.locked_by = p_worker
      limit 1 for no key update skip locked) l), 0);
  select count(*) into v_held from runs r where r.shard = p_shard and r.locked_by = p_worker;
  if v_held = 0 then
    delete from workers w where w.id = p_worker;
  end if;
  return v_held;
end $f$;
