-- pawl: inner
-- Upper bounds of the latency histogram in milliseconds: 1, 2, 5, 10 … 1e9 (11 days). A histogram has
-- one more entry than this, for longer times. `api/series.ts` knows the same bounds.
create or replace function latency_bounds() returns double precision[] language sql immutable as $$
  select array[1, 2, 5, 1e1, 2e1, 5e1, 1e2, 2e2, 5e2, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7,
    1e8, 2e8, 5e8, 1e9]::double precision[]
$$;

-- Counts runs in series and failures: starts with ids in (p_after_id, p_upto_id], ends in
-- (p_after, p_upto], and of the runs p_ids their starts after p_upto_id and their ends after p_upto.
-- The caller holds the lock of series_cursor. Rides runs_pkey, and runs_expiry once per retention.
create or replace function add_to_series(
  p_after_id bigint, p_upto_id bigint, p_after timestamptz, p_upto timestamptz, p_ids bigint[], p_now timestamptz
) returns void language plpgsql as $f$
declare
  c_groups constant int := 500;    -- of failures in an hour; the rest counts as one group of its definition
  v_failed bigint[];
begin
  with facts as materialized (
      select r.name, r.queue, date_trunc('minute', r.inserted_at, 'UTC') as minute, null::run_status as status, null::int as bucket, null::bigint as failed
      from runs r where r.id > p_after_id and r.id <= p_upto_id
    union all
      select r.name, r.queue, date_trunc('minute', r.inserted_at, 'UTC'), null, null, null
      from unnest(p_ids) u(id) cross join lateral (select t.* from runs t where t.id = u.id limit 1) r
      where r.id > p_upto_id
    union all
      select e.name, e.queue, date_trunc('minute', e.completed_at, 'UTC'), e.status,
        width_bucket(ms_until(e.completed_at, e.inserted_at), latency_bounds()), case when e.status = 'failed' then e.id end
      from ended_between(p_after, p_upto, p_ids) e
  ), counted as (
    select f.name, coalesce(f.queue, 'default') as queue, f.minute, f.status, f.bucket, count(*) as runs
    from facts f group by 1, 2, 3, 4, 5
  ), placed as (
    select g.grain, k.name, k.queue, date_trunc(g.grain, c.minute, 'UTC') as at, c.bucket,
      coalesce(sum(c.runs) filter (where c.status is null), 0) as started,
      coalesce(sum(c.runs) filter (where c.status = 'done'), 0) as completed,
      coalesce(sum(c.runs) filter (where c.status = 'failed'), 0) as failed,
      coalesce(sum(c.runs) filter (where c.status = 'cancelled'), 0) as cancelled
    from counted c
    cross join (values ('minute', interval '1 day'), ('hour', interval '31 days')) g(grain, kept)
    cross join lateral (values (c.name, c.queue), (c.name, ''), ('', c.queue), ('', '')) k(name, queue)
    where c.minute > p_now - g.kept
    group by 1, 2, 3, 4, 5
  ), summed as (
    select p.grain, p.name, p.queue, p.at, sum(p.started) as started, sum(p.completed) as completed, sum(p.failed) as failed,
      sum(p.cancelled) as cancelled,
      jsonb_object_agg(p.bucket, p.completed + p.failed + p.cancelled) filter (where p.bucket is not null) as latency
    from placed p group by 1, 2, 3, 4
  ), added as (
    insert into series as s (grain, name, queue, at, started, completed, failed, cancelled, latency)
    select m.grain, m.name, m.queue, m.at, m.started, m.completed, m.failed, m.cancelled,
      case when m.latency is not null then
        array(select coalesce((m.latency ->> i::text)::int, 0) from generate_series(0, cardinality(latency_bounds())) i order by i) end
    from summed m
    on conflict (grain, name, queue, at) do update set
      started = s.started + excluded.started, completed = s.completed + excluded.completed,
      failed = s.failed + excluded.failed, cancelled = s.cancelled + excluded.cancelled,
      latency = case when excluded.latency is null then s.latency when s.latency is null then excluded.latency
        else array(select u.a + u.b from unnest(s.latency, excluded.latency) with ordinality u(a, b, i) order by u.i) end
  )
  select array_agg(f.failed) filter (where f.failed is not null) into v_failed from facts f;
  if v_failed is null then
    return;
  end if;

  with failed as materialized (
    select date_trunc('hour', e.completed_at, 'UTC') as at, e.name, e.completed_at, e.id,
      left(coalesce(e.error ->> 'code', e.error ->> 'name', ''), 200) as code,
      left(coalesce(e.error ->> 'step', e.step, ''), 200) as step, left(e.error ->> 'message', 500) as message
    from unnest(v_failed) u(id) cross join lateral (
      select t.id, t.name, t.completed_at, t.step, t.error from runs t where t.id = u.id limit 1) e
    where e.completed_at > p_now - interval '31 days'
  ), hours as materialized (
    -- hours that have all the groups they may have
    select h.at from (select distinct f.at from failed f) h
    where (select count(*) from failures g where g.at = h.at) + (select count(distinct (f.name, f.code, f.step)) from failed f where f.at = h.at) > c_groups
  ), grouped as (
    select f.at, f.name, k.code, k.step, count(*) as failed, min(f.completed_at) as first_at, max(f.completed_at) as last_at,
      (array_agg(f.id order by f.completed_at desc, f.id desc))[1] as last_run_id,
      (array_agg(f.message order by f.completed_at desc, f.id desc))[1] as message
    from failed f
    cross join lateral (
      select case when x.is_other then '(other)' else f.code end as code, case when x.is_other then '' else f.step end as step
      from (select exists (select 1 from hours h where h.at = f.at) and not exists (
        select 1 from failures g where g.at = f.at and g.name = f.name and g.code = f.code and g.step = f.step) as is_other) x) k
    group by 1, 2, 3, 4
  )
  insert into failures as s (at, name, code, step, failed, first_at, last_at, last_run_id, message)
  select g.at, g.name, g.code, g.step, g.failed, g.first_at, g.last_at, g.last_run_id, g.message from grouped g
  on conflict (at, name, code, step) do update set
    failed = s.failed + excluded.failed, first_at = least(s.first_at, excluded.first_at),
    last_at = greatest(s.last_at, excluded.last_at),
    last_run_id = case when excluded.last_at >= s.last_at then excluded.last_run_id else s.last_run_id end,
    message = case when excluded.last_at >= s.last_at then excluded.message else s.message end;
end $f$;

-- The runs that ended in (p_after, p_upto], and those of p_ids that ended after p_upto.
create or replace function ended_between(p_after timestamptz, p_upto timestamptz, p_ids bigint[])
returns table (id bigint, name text, queue text, status run_status, inserted_at timestamptz, completed_at timestamptz)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  if p_after < p_upto then
    return query
      select r.* from ended_retentions() k(kept)
      cross join lateral (
        select t.id, t.name, t.queue, t.status, t.inserted_at, t.completed_at
        from runs t
        where t.retention = k.kept and t.expires_at > p_after + k.kept and t.expires_at <= p_upto + k.kept
          and (t.completed_at > p_after and t.completed_at <= p_upto) is true
        offset 0) r;
  end if;
  if p_ids is not null then
    return query
      select r.* from unnest(p_ids) u(id) cross join lateral (
        select t.id, t.name, t.queue, t.status, t.inserted_at, t.completed_at
        from runs t where t.id = u.id limit 1) r
      where r.completed_at > p_upto;
  end if;
end $f$;

-- The retentions of ended runs below p_below (null: all), at most 10,000: a skip scan over runs_expiry,
-- from the longest to the shortest. It goes backwards, to the newest run of each: the oldest may be deleted, and an old
-- transaction may keep their entries.
create or replace function ended_retentions(p_below interval default null) returns setof interval language plpgsql stable as $f$
begin
  return query
    with recursive k(kept, n) as (
        (select r.retention, 1 from runs r where r.expires_at is not null and r.retention < coalesce(p_below, interval '10000 years')
          order by r.retention desc, r.expires_at desc limit 1)
      union all
        select (select r.retention from runs r where r.expires_at is not null and r.retention < k.kept
          order by r.retention desc, r.expires_at desc limit 1), k.n + 1
        from k where k.kept is not null and k.n < 10000)
    select k.kept from k where k.kept is not null;
end $f$;
