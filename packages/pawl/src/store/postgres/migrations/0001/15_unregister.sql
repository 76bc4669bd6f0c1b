-- A worker that has stopped takes its row away, unless a run still names it: then the reaper will, and until then it serves
-- nothing.
create function unregister(p_shard smallint, p_worker text) returns void language plpgsql as $f$
begin
  perform require_read_committed();
  delete from workers w where w.id = p_worker
    and not exists (select 1 from runs r where r.shard = p_shard and r.locked_by = p_worker);
  if not found then
    update workers w set serves = '{}', queues = '{}' where w.id = p_worker;
  end if;
end $f$;
