-- pawl: inner
-- The rows of new runs, one per position; p_only leaves positions out (null: none). A run without a
-- kind was started by name: it takes missing values from its definition (p_known). If no worker has
-- registered that yet, they stay open until one does. Without p_worker no run is inserted already
-- claimed. p_hold says which begin blocked (first_holds), p_concurrency which have a concurrency limit,
-- and p_extra which are marked (marks_of); null: none. The planner inlines this.
create or replace function new_rows(
  p_ids bigint[], p_runs new_run[], p_input text[], p_hold smallint[], p_concurrency text[], p_extra boolean[], p_only int[], p_known jsonb, p_now timestamptz,
  p_ceiling interval, p_worker text, p_claim_id bigint
) returns table (id bigint, status run_status, hold smallint, name text, version int, kind text, queue text, priority smallint,
  input jsonb, step text, eligible_at timestamptz, inserted_at timestamptz, retention interval, idempotency_key text, unique_key bytea,
  unique_scope run_status[], partition_key text, rate_limit text, weight int, parent_id bigint, child_of int, "position" int, trace text,
  locked_by text, claim_id bigint, concurrency text, has_extras boolean)
language sql stable as $$
  select i.id,
    first_status(i.direct, p_worker),
    case when i.kind is null and i.known is null then 2::smallint else coalesce(p_hold[i.o], 0::smallint) end,
    i.name,
    coalesce(i.version, (i.known ->> 'version')::int, 1),
    coalesce(i.kind, i.known ->> 'kind'),
    coalesce(i.queue, i.known ->> 'queue', case when i.kind is not null then 'default' end),
    coalesce(i.priority, (i.known ->> 'priority')::smallint, case when i.kind is not null then 0::smallint end),
    i.input::jsonb, i.step,
    coalesce(i.at, p_now + coalesce(i.delay_ms, 0) * interval '1 millisecond'),
    p_now,
    case when i.retention_ms is not null or i.kind is not null or i.known is not null then
      least(coalesce(i.retention_ms * interval '1 millisecond', (i.known ->> 'retention')::interval, '720 hours'), p_ceiling) end,
    i.idempotency_key, i.unique_key,
    case when i.unique_key is not null then
      coalesce(i.unique_scope, '{runnable,executing,awaiting_signal,awaiting_children}')::run_status[] end,
    i.partition_key, i.rate_limit, case when i.rate_limit is not null then coalesce(i.weight, 1) end,
    i.parent_id, i.child_of, i.position, i.trace,
    case when i.direct then p_worker end,
    case when i.direct and p_worker is not null then p_claim_id end,
    p_concurrency[i.o], p_extra[i.o]
  from (
    select u.*,
      case when u.kind is null then p_known -> (u.name || coalesce('@' || u.version, '')) end as known
    from rows from (unnest(p_runs), unnest(p_ids), unnest(p_input)) with ordinality
      u(name, version, kind, queue, priority, step, delay_ms, at, retention_ms, idempotency_key, unique_key, unique_scope,
        partition_key, rate_limit, weight, parent_id, child_of, position, trace, direct, options, id, input, o)
    where p_only is null or u.o = any (p_only)) i
$$;

-- The status that a new run begins with. The planner inlines this.
create or replace function first_status(p_is_direct boolean, p_worker text) returns run_status language sql immutable as $$
  select case when p_is_direct and p_worker is not null then 'executing'::run_status else 'runnable'::run_status end
$$;
