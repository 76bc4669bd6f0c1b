-- pawl: inner
-- The rows of new runs, one per position; p_only leaves positions out (null: none). A run without a
-- kind was started by name: it takes missing values from its definition (p_known). If no worker has
-- registered that yet, they stay open until one does. Without p_worker no run is inserted already
-- claimed. p_options are the rare options (read_options; null: no run has any). A deadline counts
-- from when the run may begin. p_hold says which begin blocked (first_holds; null: none). The planner
-- inlines this.
create or replace function new_rows(
  p_ids bigint[], p_runs new_run[], p_input text[], p_options jsonb[], p_hold smallint[], p_only int[], p_known jsonb, p_now timestamptz,
  p_ceiling interval, p_worker text, p_claim_id bigint
) returns table (id bigint, status run_status, hold smallint, name text, version int, kind text, queue text, priority smallint,
  input jsonb, step text, eligible_at timestamptz, inserted_at timestamptz, retention interval, idempotency_key text, unique_key bytea,
  unique_scope run_status[], partition_key text, rate_limit text, weight int, parent_id bigint, child_of int, "position" int, trace text,
  locked_by text, claim_id bigint,
  deadline_at timestamptz, debounce_until timestamptz, debounce_key text, correlation_key text, concurrency text, tagged boolean, slot smallint)
language sql stable as $$
  select i.id,
    first_status(i.direct, p_worker),
    case when i.kind is null and i.known is null then 2::smallint else coalesce(i.hold, 0::smallint) end,
    i.name,
    coalesce(i.version, (i.known ->> 'version')::int, 1),
    coalesce(i.kind, i.known ->> 'kind'),
    coalesce(i.queue, i.known ->> 'queue', case when i.kind is not null then 'default' end),
    coalesce(i.priority, (i.known ->> 'priority')::smallint, case when i.kind is not null then 0::smallint end),
    i.input::jsonb, i.step,
    i.eligible_at,
    p_now,
    case when i.retention_ms is not null or i.kind is not null or i.known is not null then
      least(coalesce(i.retention_ms * interval '1 millisecond', (i.known ->> 'retention')::interval, '30 days'), p_ceiling) end,
    i.idempotency_key, i.unique_key,
    case when i.unique_key is not null then
      coalesce(i.unique_scope, '{runnable,executing,awaiting_signal,awaiting_children}')::run_status[] end,
    i.partition_key, i.rate_limit, case when i.rate_limit is not null then coalesce(i.weight, 1) end,
    i.parent_id, i.child_of, i.position, i.trace,
    case when i.direct then p_worker end,
    case when i.direct and p_worker is not null then p_claim_id end,
    i.eligible_at + coalesce((i.more ->> 'timeoutMs')::bigint * interval '1 millisecond', (i.known ->> 'timeout')::interval),
    p_now + (i.more -> 'debounce' ->> 'maxDelayMs')::bigint * interval '1 millisecond',
    i.more -> 'debounce' ->> 'key', i.more ->> 'correlationKey', i.more ->> 'concurrency',
    case when i.more -> 'tags' <> '{}' then true end,
    case when i.hold = 32 then 0::smallint end
  from (
    select u.*, coalesce(u.at, p_now + coalesce(u.delay_ms, (u.more -> 'debounce' ->> 'delayMs')::bigint, 0) * interval '1 millisecond') as eligible_at,
      case when u.kind is null then p_known -> (u.name || coalesce('@' || u.version, '')) end as known
    from rows from (unnest(p_runs), unnest(p_ids), unnest(p_input), unnest(p_options), unnest(p_hold)) with ordinality
      u(name, version, kind, queue, priority, step, delay_ms, at, retention_ms, idempotency_key, unique_key, unique_scope,
        partition_key, rate_limit, weight, parent_id, child_of, position, trace, direct, options, id, input, more, hold, o)
    where p_only is null or u.o = any (p_only)) i
$$;

-- The status that a new run begins with. The planner inlines this.
create or replace function first_status(p_is_direct boolean, p_worker text) returns run_status language sql immutable as $$
  select case when p_is_direct and p_worker is not null then 'executing'::run_status else 'runnable'::run_status end
$$;
