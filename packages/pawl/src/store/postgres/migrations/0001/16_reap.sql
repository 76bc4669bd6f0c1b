-- Crash recovery, a repeated sweep: the claims of workers whose lease has passed, or that have no row, end.
-- Their runs are runnable again with attempt and crashes + 1 (let_go). Workers are judged only after beats have
-- reached the database for a whole lease (settings.beats_since). Holders are found by a skip scan over runs_holders;
-- a worker's row is locked while it is judged, so that a beat in flight counts. At most p_limit runs a call.
create function reap(p_shard smallint, p_limit int) returns table (reaped int, workers_gone int) language plpgsql as $f$
declare
  v_now timestamptz := clock_timestamp();
  v_beats_since timestamptz;
  v_dead text[];
  v_ids bigint[];
begin
  perform require_read_committed();
  select s.beats_since into strict v_beats_since from settings s;
  v_dead := array(
    select w.id from workers w
    where w.seen_at + w.lease < v_now and v_beats_since + w.lease <= v_now
    order by w.id for update skip locked);
  v_dead := v_dead || array(
    with recursive holder(id) as (
        select min(r.locked_by) from runs r where r.shard = p_shard and r.locked_by is not null
      union all
        select (select min(r.locked_by) from runs r where r.shard = p_shard and r.locked_by > holder.id)
        from holder where holder.id is not null)
    select h.id from holder h where h.id is not null and not exists (select 1 from workers w where w.id = h.id));

  v_ids := array(
    select l.id from unnest(v_dead) d(worker)
    cross join lateral (select r.id from runs r
      where r.shard = p_shard and r.locked_by = d.worker order by r.id limit p_limit for no key update skip locked) l
    limit p_limit);
  select count(*) into reaped from let_go(p_shard, v_ids, 1);

  delete from workers w where w.id = any (v_dead)
    and not exists (select 1 from runs r where r.shard = p_shard and r.locked_by = w.id);
  get diagnostics workers_gone = row_count;
  return next;
end $f$;
