-- pawl: call
-- The gauges of a database for the metrics, one row each: `gauge`, its labels, its value. Counts
-- stop at p_most: a longer queue shows by its age.
-- Reads each off an index that has just these runs: by queue and definition (due_lines), by
-- definition (runs_unplaced) or by limit (runs_throttled, slots_held, slots_line). Each is a skip
-- scan over at most 1,000 or 200 entries, so that other runs never slow it down.
-- `unserved` counts due runs of definitions that no live worker serves in their queue, and runs
-- whose definition no worker has ever registered.
create or replace function gauges(p_most int) returns table (gauge text, first text, second text, value double precision)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_names constant int := 200;
  v_now timestamptz := clock();
begin
  return query
    with due as materialized (select * from due_lines(p_most, v_now))
    select g.gauge, d.queue, null::text,
      case when g.gauge = 'depth' then least(d.runs, p_most) else coalesce(ms_until(v_now, d.since) / 1000, 0) end
    from (select due.queue, sum(due.runs) as runs, min(due.since) as since from due group by due.queue) d, (values ('depth'), ('age')) g(gauge)
    union all
    select 'unserved', u.name, u.version::text, least(sum(u.runs), p_most)::double precision from (
      select d.name, d.version, d.runs from due d where d.runs > 0 and not is_served(d.name, d.version, d.queue)
      union all
      select w.name, w.version, w.runs from unplaced(p_most) w) u
    group by u.name, u.version;

  return query
    with recursive waiting(rate_limit, n) as (
        (select r.rate_limit, 1 from runs r where r.throttled order by r.rate_limit limit 1)
      union all
        select (select r.rate_limit from runs r where r.throttled and r.rate_limit > waiting.rate_limit
          order by r.rate_limit limit 1), n + 1
        from waiting where waiting.rate_limit is not null and n < c_names)
    -- a limit and its keys are one
    select 'throttled', split_part(w.rate_limit, ':', 1), null::text, sum(b.runs)::double precision
    from waiting w cross join lateral (select count(*) as runs from (select 1 from runs r
      where r.throttled and r.rate_limit = w.rate_limit limit p_most) c) b
    where w.rate_limit is not null group by 2;

  return query
    select 'slots', l.name, s.state, s.value from (
      select t.name, t.concurrent from limits t where t.concurrent is not null order by t.name limit c_names) l
    cross join lateral (values
      ('size', l.concurrent::double precision),
      ('used', (select count(*) from (
        (select 1 from slots s where s.concurrency = l.name and s.slot > 0 limit p_most)
        union all
        (select 1 from slots s where s.concurrency >= l.name || ':' and s.concurrency < l.name || ';' and s.slot > 0 limit p_most)
        limit p_most) h)::double precision),
      ('waiting', (select count(*) from (
        (select 1 from slots s where s.concurrency = l.name and s.slot = 0 limit p_most)
        union all
        (select 1 from slots s where s.concurrency >= l.name || ':' and s.concurrency < l.name || ';' and s.slot = 0 limit p_most)
        limit p_most) w)::double precision)) s(state, value);

  return query
    select 'executing', h.name, null::text, count(*)::double precision from workers w cross join lateral (
      select r.name from runs r where r.locked_by = w.id and r.status = 'executing' limit p_most) h
    group by h.name;

  return query
    select 'blocked', null::text, null::text, count(*)::double precision from (
      select 1 from runs r where (r.hold & 1) <> 0 and (r.id < first_message_id()) is true limit p_most) b;

  return query
    select 'paused', null::text, null::text, count(*)::double precision from (
      select 1 from extras x where x.paused is not null limit p_most) p
    union all
    select 'pause_age', p.scope, p.name, max(ms_until(v_now, p.paused_at)) / 1000 from pauses p group by p.scope, p.name;

  return query
    select g.gauge, o.action, null::text,
      case when g.gauge = 'bulk_left' then sum(greatest(o.counted - o.done - o.skipped - o.failed, 0))::double precision
        else max(ms_until(v_now, coalesce(o.worked_at, o.started_at))) / 1000 end
    from (select b.* from bulk_operations b where b.completed_at is null order by b.id limit c_names) o, (values ('bulk_left'), ('bulk_idle')) g(gauge)
    group by g.gauge, o.action;

  return query
    select 'workers', null::text, null::text, count(*)::double precision from workers w where w.seen_at + w.lease > clock_timestamp();
end $f$;
