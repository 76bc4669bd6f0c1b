-- pawl: call; custom plans
-- A page of runs, newest first, up to p_limit and 16 MiB (see get). Every filter may be null.
-- p_error is the code of the error, or its name if it has none. p_input is JSON that the input
-- contains. p_more has the filters of later versions, and the prefixes ("names", "queues") of a token
-- that may see only some. The filters decide which index finds the runs:
--   tags, correlationKey  tags_listing or extras_correlated (list_labelled)
--   paused       extras_paused: runs that are paused themselves
--   p_input      runs_input, if the operator has made it (docs/operations.md) and hits are rare
--   p_parent_id  runs_children
--   p_error      runs_failures
--   p_name       runs_listing, each status in order, and runs_holders for executing runs, merged
--   a status, a kind, a time or prefixes of names: the same for every name, up to 1,000, found by a
--   skip scan
--   none of these: the primary key, newest first
-- The merge reads the first few of each, and more only if those do not make a page. Version, queue
-- and p_input have no index of ours: a rare one is looked for run by run. PostgreSQL plans each
-- call anew with the given filters, so that the others vanish.
create or replace function list(
  p_name text, p_version int, p_status run_status[], p_queue text, p_kind text, p_error text, p_parent_id bigint,
  p_since timestamptz, p_until timestamptz, p_before_at timestamptz, p_before_id bigint, p_input text, p_limit int,
  p_more jsonb
) returns setof run_record language plpgsql stable as $f$
declare
  c_names constant int := 1000;
  c_hits constant int := 10000;      -- with more hits, the newest are found without an index
  v_input jsonb := p_input::jsonb;
  v_statuses run_status[] := coalesce(p_status, enum_range(null::run_status));
  v_own text[] := own_prefixes(p_more, 'names');
  v_queues text[] := own_prefixes(p_more, 'queues');
  v_names text[];
  v_ids bigint[];
  v_each int;                -- how many it reads of each name and status
  v_is_whole boolean;        -- whether these are all, or enough for a page
begin
  if is_labelled(p_more) then
    v_ids := list_labelled(p_name, p_version, p_status, p_queue, p_kind, p_error, p_parent_id, p_since, p_until, p_before_id, v_input,
      p_limit, p_more);
  elsif p_more ? 'paused' then
    v_ids := array(
      select r.id from extras x
      cross join lateral (select t.* from runs t where t.id = x.run_id limit 1) r
      where x.paused is not null and (r.hold & 16) <> 0 and is_own(r.name, r.queue, v_own, v_queues)
        and (p_parent_id is null or r.parent_id = p_parent_id)
        and (p_error is null or (coalesce(r.error ->> 'code', r.error ->> 'name') collate "C") = p_error)
        and is_listed(r, p_name, p_version, p_status, p_queue, p_kind, p_since, p_until, v_input, p_before_at, p_before_id)
      order by r.inserted_at desc, r.id desc limit p_limit);
  elsif v_input is not null and p_parent_id is null and p_error is null
      and exists (select 1 from pg_index i where i.indexrelid = to_regclass('runs_input') and i.indisvalid) then
    with found as materialized (
      select r.id, r.inserted_at from runs r
      where r.id < first_message_id() and is_own(r.name, r.queue, v_own, v_queues)
        and is_listed(r, p_name, p_version, p_status, p_queue, p_kind, p_since, p_until, v_input, p_before_at, p_before_id)
      limit c_hits)
    select array(select f.id from found f order by f.inserted_at desc, f.id desc limit p_limit)
    into v_ids where (select count(*) from found) < c_hits;
  end if;
  if v_ids is not null then
    null;    -- found
  elsif p_parent_id is not null then
    v_ids := array(
      select r.id from runs r
      where r.parent_id = p_parent_id and is_own(r.name, r.queue, v_own, v_queues)
        and (p_error is null or (coalesce(r.error ->> 'code', r.error ->> 'name') collate "C") = p_error)
        and is_listed(r, p_name, p_version, p_status, p_queue, p_kind, p_since, p_until, v_input, p_before_at, p_before_id)
      order by r.inserted_at desc, r.id desc limit p_limit);
  elsif p_error is not null then
    v_ids := array(
      select r.id from runs r
      where r.status = 'failed' and r.id < first_message_id() and is_own(r.name, r.queue, v_own, v_queues) and (coalesce(r.error ->> 'code', r.error ->> 'name') collate "C") = p_error
        and is_listed(r, p_name, p_version, p_status, p_queue, p_kind, p_since, p_until, v_input, p_before_at, p_before_id)
      order by r.inserted_at desc, r.id desc limit p_limit);
  elsif p_name is null and p_status is null and p_kind is null and p_since is null and p_until is null and v_own is null then
    v_ids := array(
      select r.id from runs r
      where r.id < coalesce(p_before_id, first_message_id())
        -- ids are in the order of inserted_at, so the id alone says where the page begins
        and is_listed(r, null, p_version, null, p_queue, null, null, null, v_input, null, null) and is_own(null, r.queue, null, v_queues)
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
        -- p_kind: names registered as that kind, and unregistered names whose first run is of it
        select k.name from known k where k.name is not null and is_own(k.name, null, v_own, null) and (p_kind is null
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
              and is_own(null, t.queue, null, v_queues)
              and is_listed(t, null, p_version, null, p_queue, p_kind, p_since, p_until, v_input, p_before_at, p_before_id)
            order by t.inserted_at desc, t.id desc limit v_each) listed
          union all
          select t.id, t.inserted_at, 0 from runs t
          where t.status = 'executing' and t.locked_by is not null and is_own(t.name, t.queue, v_own, v_queues)
            and is_listed(t, p_name, p_version, p_status, p_queue, p_kind, p_since, p_until, v_input, p_before_at, p_before_id)),
        -- the first line that may have more runs: behind it some may be missing
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
