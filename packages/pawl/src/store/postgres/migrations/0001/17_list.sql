-- A page of runs, newest first; every filter may be null. With a name, each status is read off runs_listing in order,
-- executing runs off runs_holders, and the pages are merged; without one, the newest are read off the primary key. Planned anew with the filters given,
-- so that the others vanish. p_input (JSON) is contained in the input; no index has it, so a rare one is looked for run by run.
create function list(
  p_shard smallint, p_name text, p_version int, p_status run_status[], p_queue text, p_since timestamptz, p_until timestamptz,
  p_before_at timestamptz, p_before_id bigint, p_input text, p_limit int
) returns setof run_record language plpgsql stable as $f$
declare
  v_input jsonb := p_input::jsonb;
begin
  if p_name is null then
    return query
      select r.id, r.name, r.version, r.kind, r.status, r.step, r.attempt, coalesce(r.queue, 'default'), coalesce(r.priority, 0::smallint),
        r.input::text, r.state::text, r.result::text, r.error::text, r.parent_id, r.idempotency_key,
        iso(r.inserted_at), iso(r.completed_at), iso(nullif(r.eligible_at, 'infinity')), iso(r.expires_at)
      from runs r
      where r.shard = p_shard
        and (p_version is null or r.version = p_version)
        and (p_status is null or r.status = any (p_status))
        and (p_queue is null or r.queue = p_queue)
        and (p_since is null or r.inserted_at >= p_since)
        and (p_until is null or r.inserted_at < p_until)
        and (p_before_id is null or r.id < p_before_id)
        and (v_input is null or r.input @> v_input)
      order by r.id desc
      limit p_limit;
    return;
  end if;
  return query
    select r.id, r.name, r.version, r.kind, r.status, r.step, r.attempt, coalesce(r.queue, 'default'), coalesce(r.priority, 0::smallint),
      r.input::text, r.state::text, r.result::text, r.error::text, r.parent_id, r.idempotency_key,
      iso(r.inserted_at), iso(r.completed_at), iso(nullif(r.eligible_at, 'infinity')), iso(r.expires_at)
    from (
      select listed.* from unnest(coalesce(p_status, enum_range(null::run_status))) s(status)
      cross join lateral (
        select t.* from runs t
        where t.shard = p_shard and t.name = p_name and t.status = s.status and t.status <> 'executing'
          and (p_version is null or t.version = p_version)
          and (p_queue is null or t.queue = p_queue)
          and (p_since is null or t.inserted_at >= p_since)
          and (p_until is null or t.inserted_at < p_until)
          and (p_before_at is null or (t.inserted_at, t.id) < (p_before_at, p_before_id))
          and (v_input is null or t.input @> v_input)
        order by t.inserted_at desc, t.id desc
        limit p_limit) listed
      union all
      select t.* from runs t
      where t.shard = p_shard and t.name = p_name and t.status = 'executing' and t.locked_by is not null
        and (p_status is null or 'executing' = any (p_status))
        and (p_version is null or t.version = p_version)
        and (p_queue is null or t.queue = p_queue)
        and (p_since is null or t.inserted_at >= p_since)
        and (p_until is null or t.inserted_at < p_until)
        and (p_before_at is null or (t.inserted_at, t.id) < (p_before_at, p_before_id))
        and (v_input is null or t.input @> v_input)
    ) r
    order by r.inserted_at desc, r.id desc
    limit p_limit;
end $f$;
