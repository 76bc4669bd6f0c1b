-- pawl: call
-- Runs that wait for a signal, newest start first, before the run (p_before_at, p_before_id): of one
-- definition, or for the signal p_signal, or both; for a token with prefixes only its names and queues.
-- A workflow that only sleeps, or waits for a child, awaits no signal. Looks at no more than 3,000
-- waiting runs, so a page may be short. `next_at` and `next_id`, the same in each row, say where the
-- next page begins (null: at the end); a page without runs has one row without id.
-- Rides runs_listing, once per name.
create or replace function list_waiting(
  p_name text, p_signal text, p_names text[], p_queues text[], p_before_at text, p_before_id bigint, p_limit int
) returns table (
  id text, name text, version int, kind text, queue text, step text, signals text, since text, deadline text, started_at text, tags text,
  next_at text, next_id text)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_names constant int := 1000;
  c_batch constant int := 300;
  c_rounds constant int := 10;
  v_names text[] := array[p_name];
  v_at timestamptz := coalesce(p_before_at::timestamptz, 'infinity');
  v_id bigint := coalesce(p_before_id, first_message_id());
  v_seen bigint[];
  v_ids bigint[] := '{}';
  v_is_more boolean := true;
begin
  if p_name is null then
    v_names := array(
      with recursive known(name, n) as (
          (select r.name, 1 from runs r where r.status <> 'executing' and r.id < first_message_id() order by r.name limit 1)
        union all
          select (select r.name from runs r where r.status <> 'executing' and r.id < first_message_id() and r.name > known.name
            order by r.name limit 1), n + 1
          from known where known.name is not null and n < c_names)
      select k.name from known k where k.name is not null and begins_with(k.name, p_names));
  elsif not begins_with(p_name, p_names) then
    v_names := '{}';
  end if;
  for v_round in 1 .. c_rounds loop
    v_seen := array(
      select t.id from unnest(v_names) n(name)
      cross join lateral (
        select r.id, r.inserted_at from runs r
        where r.name = n.name and r.status = 'awaiting_signal' and r.status <> 'executing' and r.id < first_message_id()
          and r.inserted_at <= v_at and (r.inserted_at, r.id) < (v_at, v_id)
        order by r.inserted_at desc, r.id desc limit c_batch) t
      order by t.inserted_at desc, t.id desc limit c_batch);
    v_ids := v_ids || array(
      select r.id from unnest(v_seen) with ordinality u(id, o)
      cross join lateral (select t.id, t.status, t.awaits, t.queue from runs t where t.id = u.id limit 1) r
      where r.status = 'awaiting_signal' and awaited_names(r.awaits) <> '{}'
        and (p_signal is null or p_signal = any (awaited_names(r.awaits))) and begins_with(r.queue, p_queues)
      order by u.o);
    v_is_more := cardinality(v_seen) = c_batch or cardinality(v_ids) > p_limit;
    if cardinality(v_ids) >= p_limit then
      v_ids := v_ids[:p_limit];
      v_id := v_ids[p_limit];
    elsif v_is_more then
      v_id := v_seen[c_batch];
    end if;
    exit when not v_is_more or cardinality(v_ids) >= p_limit;
    select r.inserted_at into v_at from runs r where r.id = v_id;
  end loop;
  return query
    select r.id::text, r.name, r.version, r.kind, r.queue, r.step, to_jsonb(awaited_names(r.awaits))::text, r.awaits ->> 'since',
      iso(within_reach(nullif(r.eligible_at, 'infinity'))), iso(r.inserted_at), case when r.has_extras then tags_of(r.id)::text end,
      n.at, n.id
    from (select case when v_is_more then iso(t.inserted_at) end as at, case when v_is_more then t.id::text end as id
      from (select 1) one left join runs t on t.id = v_id) n
    left join (unnest(v_ids) with ordinality u(id, o) join runs r on r.id = u.id) on true
    order by u.o;
end $f$;

-- The names of the signals that a wait (runs.awaits) wants. A name with ~ is the reply of a child.
create or replace function awaited_names(p_awaits jsonb) returns text[] language sql immutable as $$
  select array(select n.name from jsonb_array_elements_text(case when jsonb_typeof(p_awaits -> 'names') = 'array' then p_awaits -> 'names' end) n(name)
    where not starts_with(n.name, '~'))
$$;
