-- pawl: inner
-- Whether a run passes these filters of list and count_listed; a null filter lets every run pass.
-- The planner inlines this and plans with the given filters, so that null ones vanish and the
-- others can use an index. (That needs a body of one expression and no SET clause.)
create or replace function is_listed(
  p_run runs, p_name text, p_version int, p_status run_status[], p_queue text, p_kind text,
  p_since timestamptz, p_until timestamptz, p_input jsonb, p_before_at timestamptz, p_before_id bigint
) returns boolean language sql immutable as $$
  select (p_name is null or (p_run).name = p_name)
    and (p_version is null or (p_run).version = p_version)
    and (p_status is null or (p_run).status = any (p_status))
    and (p_queue is null or (p_run).queue = p_queue)
    and (p_kind is null or (p_run).kind = p_kind)
    and (p_since is null or (p_run).inserted_at >= p_since)
    and (p_until is null or (p_run).inserted_at < p_until)
    and (p_input is null or (p_run).input @> p_input)
    and (p_before_at is null or ((p_run).inserted_at, (p_run).id) < (p_before_at, p_before_id))
$$;
