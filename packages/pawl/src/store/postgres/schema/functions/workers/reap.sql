-- pawl: call; lock_timeout 100ms
-- Crash recovery, a repeated sweep: the claims of workers whose lease has passed, or (with p_orphans) that have no row, end.
-- Their runs are runnable again with attempt and crashes + 1 (let_go). Workers are judged only after beats have
-- reached the database for a whole lease (settings.beats_since). A worker's row is locked while it is judged, so that a
-- beat in flight counts. At most p_limit runs a call.
-- Rides runs_holders: the range of each dead worker, and the gaps between the workers that have a row. The ranges of live
-- workers are never walked over: an old transaction keeps an entry there for every claim that has ended since.
create or replace function reap(p_limit int, p_orphans boolean default true)
returns table (reaped int, workers_gone int) language plpgsql as $f$
declare
  v_now timestamptz := clock_timestamp();
  v_beats_since timestamptz;
  v_dead text[];
  v_held bigint[];
  v_holders text[];
  v_ids bigint[];
begin
  perform require_read_committed();
  reaped := 0;
  workers_gone := 0;
  select s.beats_since into strict v_beats_since from settings s;
  v_dead := array(
    select w.id from workers w
    where w.seen_at + w.lease < v_now and v_beats_since + w.lease <= v_now
    order by w.id for update skip locked);
  if p_orphans then
    v_dead := v_dead || array(
      with recursive gap(low, high) as (
          select coalesce(lag(w.id) over (order by w.id), ''), w.id from workers w
        union all
          select coalesce(max(w.id), ''), null from workers w
      ), orphan(id, high) as (
          select case when gap.high is null
              then (select r.locked_by from runs r where r.locked_by > gap.low order by r.locked_by limit 1)
              else (select r.locked_by from runs r where r.locked_by > gap.low and r.locked_by < gap.high
                order by r.locked_by limit 1) end,
            gap.high
          from gap
        union all
          select case when orphan.high is null
              then (select r.locked_by from runs r where r.locked_by > orphan.id order by r.locked_by limit 1)
              else (select r.locked_by from runs r where r.locked_by > orphan.id and r.locked_by < orphan.high
                order by r.locked_by limit 1) end,
            orphan.high
          from orphan where orphan.id is not null)
      select o.id from orphan o where o.id is not null);
  end if;
  if cardinality(v_dead) = 0 then
    return next;
    return;
  end if;

  -- all they hold, locked or not: one walk says also which of them no run names any more
  select array_agg(h.id), array_agg(h.worker) into v_held, v_holders from (
    select l.id, d.worker from unnest(v_dead) d(worker)
    cross join lateral (select r.id from runs r where r.locked_by = d.worker limit p_limit) l
    limit p_limit) h;
  v_ids := array(
    select l.id from (select u.id from unnest(v_held) u(id) order by u.id) v
    cross join lateral (select r.id from runs r
      where r.id = v.id and (r.locked_by = any (v_dead)) is true
      limit 1 for no key update skip locked) l);
  v_ids := array(select g.id from let_go(v_ids, 1) g(id));
  reaped := cardinality(v_ids);

  if v_held is null or cardinality(v_held) < p_limit then
    delete from workers w where w.id = any (v_dead)
      and not exists (select 1 from unnest(v_held, v_holders) h(id, worker) where h.worker = w.id and h.id <> all (v_ids));
    get diagnostics workers_gone = row_count;
  end if;
  return next;
end $f$;
