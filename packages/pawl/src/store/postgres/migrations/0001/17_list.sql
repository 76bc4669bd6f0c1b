-- A page of runs, newest first; every filter may be null. Planned with its actual filters each time, so that the
-- null ones vanish: with a name it rides runs_listing.
create function list(
  p_name text, p_version int, p_status run_status[], p_queue text, p_since timestamptz, p_until timestamptz,
  p_before_at timestamptz, p_before_id bigint, p_limit int
) returns setof run_record language plpgsql stable as $f$
begin
  return query
    select r.id, r.name, r.version, r.kind, r.status, r.step, r.attempt, coalesce(r.queue, 'default'), r.priority,
      r.input::text, r.state::text, r.result::text, r.error::text, r.parent_id, r.idempotency_key,
      iso(r.inserted_at), iso(r.completed_at), iso(nullif(r.eligible_at, 'infinity')), iso(r.expires_at)
    from runs r
    where (p_name is null or r.name = p_name)
      and (p_version is null or r.version = p_version)
      and (p_status is null or r.status = any (p_status))
      and (p_queue is null or r.queue = p_queue)
      and (p_since is null or r.inserted_at >= p_since)
      and (p_until is null or r.inserted_at < p_until)
      and (p_before_at is null or (r.inserted_at, r.id) < (p_before_at, p_before_id))
    order by r.inserted_at desc, r.id desc
    limit p_limit;
end $f$;
