-- pawl: call
-- Registered definitions, by name and version, after p_after_name and p_after_version: their defaults,
-- what their code declares, and how many live workers serve them. Of one name (null: all), or of names
-- that begin with one of p_names. Rides definitions_pkey.
create or replace function list_definitions(p_name text, p_names text[], p_queues text[], p_after_name text, p_after_version int, p_limit int)
returns table (
  name text, version int, kind text, queue text, priority int, retention_ms double precision, timeout_ms double precision,
  registered_at text, workers int, declared text)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  v_clock timestamptz := clock_timestamp();
begin
  return query
    with serving as materialized (
      select s.served, count(*)::int as workers from workers w, unnest(w.serves) s(served)
      where w.seen_at + w.lease > v_clock group by s.served)
    select d.name, d.version, d.kind, d.queue, d.priority::int, extract(epoch from d.retention)::double precision * 1000,
      extract(epoch from d.timeout)::double precision * 1000, iso(d.registered), coalesce(s.workers, 0), coalesce(d.declared, '{}')::text
    from (
      select t.* from definitions t
      where (t.name, t.version) > (coalesce(p_after_name, ''), coalesce(p_after_version, 0))
        and (t.name = coalesce(p_name, t.name) and begins_with(t.name, p_names) and begins_with(t.queue, p_queues)) is true
      order by t.name, t.version limit p_limit) d
    left join serving s on s.served = d.name || '@' || d.version
    order by d.name, d.version;
end $f$;

-- Workers, by id, after p_after, with the definitions that they serve: to a token with prefixes only
-- those that it may see, and no other workers. `claims` is counted to 1,000. Rides workers_pkey and
-- runs_holders.
create or replace function list_workers(p_after text, p_names text[], p_queues text[], p_limit int)
returns table (
  id text, info text, serves text, queues text, lease_ms double precision, registered_at text, seen_at text, lease_until text,
  alive boolean, claims int, owner text)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  v_clock timestamptz := clock_timestamp();
begin
  return query
    select w.id, w.info::text, to_jsonb(v.serves)::text, to_jsonb(v.queues)::text, extract(epoch from w.lease)::double precision * 1000, iso(w.registered_at), iso(w.seen_at),
      iso(w.seen_at + w.lease), w.seen_at + w.lease > v_clock,
      (select count(*)::int from (select 1 from runs r where r.locked_by = w.id and r.status = 'executing' limit 1000) c), w.owner
    from workers w
    cross join lateral (select array(select s.served from unnest(w.serves) s(served) where begins_with(s.served, p_names) order by s.served) as serves,
      array(select q.queue from unnest(w.queues) q(queue) where begins_with(q.queue, p_queues) order by q.queue) as queues) v
    where w.id > coalesce(p_after, '') and (p_names is null or v.serves <> '{}') and (p_queues is null or v.queues <> '{}')
    order by w.id limit p_limit;
end $f$;
