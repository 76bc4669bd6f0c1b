-- What the metrics show of a database, one row each: `gauge`, its labels, its value. Counts stop at p_most: a longer queue is told by its age.
-- Every one is read off an index that has just these runs, by queue (runs_claim), definition (runs_unserved) or limit (runs_throttled), each by a
-- skip scan over at most 200 of them, so that no number of other runs slows it down.
create function gauges(p_shard smallint, p_most int) returns table (gauge text, first text, second text, value double precision)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_names constant int := 200;
  v_now timestamptz := now();
begin
  return query
    with recursive waiting(queue, n) as (
        (select r.queue, 1 from runs r where r.shard = p_shard
          and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end order by r.queue limit 1)
      union all
        select (select r.queue from runs r where r.shard = p_shard and r.queue > waiting.queue
            and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end order by r.queue limit 1), n + 1
        from waiting where waiting.queue is not null and n < c_names
    ), level(queue, priority, n) as (
        select w.queue, (select r.priority from runs r where r.shard = p_shard and r.queue = w.queue
            and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end order by r.priority limit 1), 1
        from waiting w where w.queue is not null
      union all
        select level.queue, (select r.priority from runs r where r.shard = p_shard and r.queue = level.queue and r.priority > level.priority
            and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end order by r.priority limit 1), n + 1
        from level where level.priority is not null and n < c_names
    ), due as (
      select l.queue, l.priority, d.runs, d.since from level l cross join lateral (
        select count(*) as runs, min(b.eligible_at) as since from (
          select r.eligible_at from runs r where r.shard = p_shard and r.queue = l.queue and r.priority = l.priority
            and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.eligible_at <= v_now
          order by r.eligible_at limit p_most) b) d
      where l.priority is not null
    )
    select g.gauge, d.queue, null::text, case when g.gauge = 'depth' then least(d.runs, p_most) else coalesce(date_part('epoch', v_now - d.since), 0) end
    from (select due.queue, sum(due.runs) as runs, min(due.since) as since from due group by due.queue) d, (values ('depth'), ('age')) g(gauge);

  return query
    with recursive waiting(name, version, n) as (
        (select r.name, r.version, 1 from runs r where r.shard = p_shard and (r.hold & 2) <> 0 order by r.name, r.version limit 1)
      union all
        select x.name, x.version, n + 1 from waiting cross join lateral (
          select r.name, r.version from runs r where r.shard = p_shard and (r.hold & 2) <> 0 and (r.name, r.version) > (waiting.name, waiting.version)
          order by r.name, r.version limit 1) x
        where n < c_names)
    select 'unserved', w.name, w.version::text, (select count(*) from (select 1 from runs r
      where r.shard = p_shard and (r.hold & 2) <> 0 and r.name = w.name and r.version = w.version limit p_most) b)::double precision
    from waiting w;

  return query
    with recursive waiting(rate_limit, n) as (
        (select r.rate_limit, 1 from runs r where r.shard = p_shard and r.throttled order by r.rate_limit limit 1)
      union all
        select (select r.rate_limit from runs r where r.shard = p_shard and r.throttled and r.rate_limit > waiting.rate_limit
          order by r.rate_limit limit 1), n + 1
        from waiting where waiting.rate_limit is not null and n < c_names)
    -- a limit and its keys are one
    select 'throttled', split_part(w.rate_limit, ':', 1), null::text, sum(b.runs)::double precision
    from waiting w cross join lateral (select count(*) as runs from (select 1 from runs r
      where r.shard = p_shard and r.throttled and r.rate_limit = w.rate_limit limit p_most) c) b
    where w.rate_limit is not null group by 2;

  return query
    select 'executing', h.name, null::text, count(*)::double precision from workers w cross join lateral (
      select r.name from runs r where r.shard = p_shard and r.locked_by = w.id and r.status = 'executing' limit p_most) h
    group by h.name;

  return query
    select 'blocked', null::text, null::text, count(*)::double precision from (
      select 1 from runs r where r.shard = p_shard and (r.hold & 1) <> 0 limit p_most) b;

  return query
    select 'workers', null::text, null::text, count(*)::double precision from workers w where w.seen_at + w.lease > clock_timestamp();
end $f$;
