-- pawl: call
-- The points of a chart: starts, ends, latencies and backlog of each minute or hour (p_by) in
-- [p_from, p_to), also of those in which nothing happened. Of one name or queue (null: all). For a
-- token with prefixes (p_names, p_queues; null: any) it adds up the names and queues that begin with
-- one of them. Without p_to it ends now, without p_from it begins an hour or a day earlier.
-- `counted_to`: how far the counts are complete. `backlog` is null if nobody looked then.
-- Rides series_pkey, with prefixes series_at.
create or replace function read_series(p_by text, p_from text, p_to text, p_name text, p_queue text, p_names text[], p_queues text[])
returns table (at text, started bigint, completed bigint, failed bigint, cancelled bigint, latency text, backlog bigint, counted_to text)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_points constant int := case when p_by = 'minute' then 1440 else 744 end;
  v_step interval := '1 ' || p_by;
  v_to timestamptz := date_trunc(p_by, coalesce(p_to::timestamptz, clock()) - interval '1 microsecond', 'UTC') + v_step;
  v_from timestamptz := greatest(
    date_trunc(p_by, coalesce(p_from::timestamptz, v_to - case when p_by = 'minute' then interval '1 hour' else interval '1 day' end), 'UTC'),
    v_to - c_points * v_step);
  v_counted_to text := (select iso(nullif(c.ended_at, '-infinity')) from series_cursor c);
begin
  if p_names is null and p_queues is null then
    return query
      select iso(u.at), sum(u.started), sum(u.completed), sum(u.failed), sum(u.cancelled), max(u.latency),
        case when bool_or(u.is_sampled) then coalesce(sum(u.backlog), 0)::bigint end, max(v_counted_to)
      from (
        select g.at, 0 as started, 0 as completed, 0 as failed, 0 as cancelled, null::text as latency, null::int as backlog, false as is_sampled
        from generate_series(v_from, v_to - v_step, v_step) g(at)
        union all
        select s.at, s.started, s.completed, s.failed, s.cancelled, to_jsonb(s.latency)::text, s.backlog, false from series s
        where s.grain = p_by and s.name = coalesce(p_name, '') and s.queue = coalesce(p_queue, '') and s.at >= v_from and s.at < v_to
        union all
        -- the row of all runs has every sample
        select s.at, 0, 0, 0, 0, null, null, s.backlog is not null from series s
        where s.grain = p_by and s.name = '' and s.queue = '' and s.at >= v_from and s.at < v_to) u
      group by u.at order by u.at;
    return;
  end if;
  return query
    with found as materialized (
      select s.at, s.started, s.completed, s.failed, s.cancelled, s.latency, s.backlog from series s
      where s.grain = p_by and s.at >= v_from and s.at < v_to
        and (s.name <> '' and s.queue <> '' and s.name = coalesce(p_name, s.name) and s.queue = coalesce(p_queue, s.queue)
          and begins_with(s.name, p_names) and begins_with(s.queue, p_queues)) is true
    )
    select iso(u.at), sum(u.started), sum(u.completed), sum(u.failed), sum(u.cancelled), max(u.latency),
      case when bool_or(u.is_sampled) then coalesce(sum(u.backlog), 0)::bigint end, max(v_counted_to)
    from (
      select g.at, 0 as started, 0 as completed, 0 as failed, 0 as cancelled, null::text as latency, null::int as backlog, false as is_sampled
      from generate_series(v_from, v_to - v_step, v_step) g(at)
      union all
      select f.at, f.started, f.completed, f.failed, f.cancelled, null, f.backlog, false from found f
      union all
      select x.at, 0, 0, 0, 0, jsonb_agg(x.n order by x.i)::text, null, false
      from (select f.at, n.i, sum(n.n) as n from found f cross join lateral unnest(f.latency) with ordinality n(n, i) group by f.at, n.i) x
      group by x.at
      union all
      select s.at, 0, 0, 0, 0, null, null, s.backlog is not null from series s
      where s.grain = p_by and s.name = '' and s.queue = '' and s.at >= v_from and s.at < v_to) u
    group by u.at order by u.at;
end $f$;

-- Whether a text begins with one of these prefixes (null: any text does).
create or replace function begins_with(p_text text, p_prefixes text[]) returns boolean language sql immutable as $$
  select p_prefixes is null or exists (select 1 from unnest(p_prefixes) u(prefix) where starts_with(p_text, u.prefix))
$$;

-- Failures since the hour of p_since (null: a day ago) in groups of definition, error code and step, the largest first.
-- Of one name (null: all), or of names that begin with one of p_names. Rides failures_pkey.
create or replace function read_failures(p_since text, p_name text, p_names text[], p_limit int)
returns table (name text, code text, step text, message text, failed bigint, first_at text, last_at text, last_run_id text)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
  v_since timestamptz := date_trunc('hour', greatest(coalesce(p_since::timestamptz, v_now - interval '1 day'), v_now - interval '31 days'), 'UTC');
begin
  return query
    select g.name, g.code, nullif(g.step, ''), g.message, g.failed, iso(g.first_at), iso(g.last_at), g.last_run_id::text from (
      select f.name, f.code, f.step, sum(f.failed) as failed, min(f.first_at) as first_at, max(f.last_at) as last_at,
        (array_agg(f.last_run_id order by f.last_at desc))[1] as last_run_id, (array_agg(f.message order by f.last_at desc))[1] as message
      from failures f
      where f.at >= v_since
        and (f.name = coalesce(p_name, f.name) and begins_with(f.name, p_names)) is true
      group by f.name, f.code, f.step) g
    order by g.failed desc, g.last_at desc, g.name, g.code, g.step limit p_limit;
end $f$;
