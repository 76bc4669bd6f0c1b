-- pawl: call; custom plans
-- A page of runs, newest first, up to p_limit and 16 MiB (see get); every filter may be null. Which index finds them depends on what is asked for: the children of a run are read off
-- runs_children, failures by their code off runs_failures; with a name, each status is read off runs_listing in order, executing runs off runs_holders, and the
-- pages are merged; with a status, a kind or a time but no name, the same for every name there is (found by a skip scan), up to 1,000; and without any of
-- these the newest are read off the primary key. If somebody has made an index runs_input (docs/operations.md), what is rare is read off that. What is merged are the first few of each, and more only if those do not make a page. Planned anew with the filters given, so that the others vanish. Version, queue and p_input (JSON, contained in the
-- input) have no index of ours: a rare one is looked for run by run. p_error is the code of the error, or its name if it has none.
create or replace function list(
  p_name text, p_version int, p_status run_status[], p_queue text, p_kind text, p_error text, p_parent_id bigint,
  p_since timestamptz, p_until timestamptz, p_before_at timestamptz, p_before_id bigint, p_input text, p_limit int
) returns setof run_record language plpgsql stable as $f$
declare
  c_names constant int := 1000;
  c_hits constant int := 10000;      -- what more runs than that contain is common: the newest of those are found without an index
  v_input jsonb := p_input::jsonb;
  v_statuses run_status[] := coalesce(p_status, enum_range(null::run_status));
  v_names text[];
  v_ids bigint[];
  v_each int;                -- how many are read of each name and status
  v_is_whole boolean;        -- whether that was all there is, or enough for a page
begin
  if v_input is not null and p_parent_id is null and p_error is null
      and exists (select 1 from pg_index i where i.indexrelid = to_regclass('runs_input') and i.indisvalid) then
    with found as materialized (
      select r.id, r.inserted_at from runs r
      where r.input @> v_input and r.id < first_message_id() and (p_name is null or r.name = p_name)
        and (p_version is null or r.version = p_version)
        and (p_status is null or r.status = any (p_status))
        and (p_queue is null or r.queue = p_queue)
        and (p_kind is null or r.kind = p_kind)
        and (p_since is null or r.inserted_at >= p_since)
        and (p_until is null or r.inserted_at < p_until)
        and (p_before_at is null or (r.inserted_at, r.id) < (p_before_at, p_before_id))
      limit c_hits)
    select array(select f.id from found f order by f.inserted_at desc, f.id desc limit p_limit)
    into v_ids where (select count(*) from found) < c_hits;
  end if;
  if v_ids is not null then
    null;    -- found
  elsif p_parent_id is not null then
    v_ids := array(
      select r.id from runs r
      where r.parent_id = p_parent_id and (p_name is null or r.name = p_name)
        and (p_error is null or (coalesce(r.error ->> 'code', r.error ->> 'name') collate "C") = p_error)
        and (p_version is null or r.version = p_version)
        and (p_status is null or r.status = any (p_status))
        and (p_queue is null or r.queue = p_queue)
        and (p_kind is null or r.kind = p_kind)
        and (p_since is null or r.inserted_at >= p_since)
        and (p_until is null or r.inserted_at < p_until)
        and (v_input is null or r.input @> v_input)
        and (p_before_at is null or (r.inserted_at, r.id) < (p_before_at, p_before_id))
      order by r.inserted_at desc, r.id desc limit p_limit);
  elsif p_error is not null then
    v_ids := array(
      select r.id from runs r
      where r.status = 'failed' and r.id < first_message_id() and (coalesce(r.error ->> 'code', r.error ->> 'name') collate "C") = p_error
        and (p_name is null or r.name = p_name)
        and (p_version is null or r.version = p_version)
        and (p_status is null or r.status = any (p_status))
        and (p_queue is null or r.queue = p_queue)
        and (p_kind is null or r.kind = p_kind)
        and (p_since is null or r.inserted_at >= p_since)
        and (p_until is null or r.inserted_at < p_until)
        and (v_input is null or r.input @> v_input)
        and (p_before_at is null or (r.inserted_at, r.id) < (p_before_at, p_before_id))
      order by r.inserted_at desc, r.id desc limit p_limit);
  elsif p_name is null and p_status is null and p_kind is null and p_since is null and p_until is null then
    v_ids := array(
      select r.id from runs r
      where r.id < coalesce(p_before_id, first_message_id())
        and (p_version is null or r.version = p_version)
        and (p_queue is null or r.queue = p_queue)
        and (p_kind is null or r.kind = p_kind)
        and (p_since is null or r.inserted_at >= p_since)
        and (p_until is null or r.inserted_at < p_until)
        and (v_input is null or r.input @> v_input)
      order by r.id desc limit p_limit);
  else
    v_names := array[p_name];
    if p_name is null then
      v_names := array(
        with recursive known(name, n) as (
            (select r.name, 1 from runs r where r.status <> 'executing' and r.id < first_message_id() order by r.name limit 1)
          union all
            select (select r.name from runs r where r.status <> 'executing' and r.id < first_message_id() and r.name > known.name
              order by r.name limit 1), n + 1
            from known where known.name is not null and n < c_names)
        -- of a kind: those that are registered as that, and of the others those whose runs are, by one of them
        select k.name from known k where k.name is not null and (p_kind is null
          or exists (select 1 from definitions d where d.name = k.name and d.kind = p_kind)
          or (not exists (select 1 from definitions d where d.name = k.name) and (select coalesce(r.kind, p_kind) from runs r
            where r.status <> 'executing' and r.id < first_message_id() and r.name = k.name order by r.name, r.status limit 1) = p_kind)));
    end if;
    v_each := least(p_limit, greatest(8, 4 * p_limit / greatest(cardinality(v_names) * cardinality(v_statuses), 1)));
    loop
      with found as materialized (
          select listed.* from unnest(v_names) n(name) cross join unnest(v_statuses) s(status)
          cross join lateral (
            select t.id, t.inserted_at, row_number() over (order by t.inserted_at desc, t.id desc) as place from runs t
            where t.name = n.name and t.status = s.status and t.status <> 'executing' and t.id < first_message_id()
              and (p_version is null or t.version = p_version)
              and (p_queue is null or t.queue = p_queue)
              and (p_kind is null or t.kind = p_kind)
              and (p_since is null or t.inserted_at >= p_since)
              and (p_until is null or t.inserted_at < p_until)
              and (v_input is null or t.input @> v_input)
              and (p_before_at is null or (t.inserted_at, t.id) < (p_before_at, p_before_id))
            order by t.inserted_at desc, t.id desc limit v_each) listed
          union all
          select t.id, t.inserted_at, 0 from runs t
          where t.status = 'executing' and t.locked_by is not null and (p_name is null or t.name = p_name)
            and (p_version is null or t.version = p_version)
            and (p_status is null or t.status = any (p_status))
            and (p_queue is null or t.queue = p_queue)
            and (p_kind is null or t.kind = p_kind)
            and (p_since is null or t.inserted_at >= p_since)
            and (p_until is null or t.inserted_at < p_until)
            and (v_input is null or t.input @> v_input)
            and (p_before_at is null or (t.inserted_at, t.id) < (p_before_at, p_before_id))),
        -- behind the first of these some may be missing
        ends as materialized (
          select l.inserted_at, l.id from found l where l.place = v_each and v_each < p_limit order by l.inserted_at desc, l.id desc limit 1)
      select array(select f.id from found f
          where coalesce((f.inserted_at, f.id) >= (select e.inserted_at, e.id from ends e), true)
          order by f.inserted_at desc, f.id desc limit p_limit),
        not exists (select 1 from ends)
      into v_ids, v_is_whole;
      exit when v_is_whole or cardinality(v_ids) >= p_limit;
      v_each := least(v_each * 4, p_limit);
    end loop;
  end if;
  return query select r.* from get(v_ids) r;
end $f$;
