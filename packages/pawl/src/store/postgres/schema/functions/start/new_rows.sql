-- pawl: inner
-- The rows of new runs, one per position of the arrays, without those that p_only leaves out (null: none). A run without a kind was
-- started by name: what was not given is taken from its definition (p_known), or, if no worker has registered it yet, left open
-- until one does. Inlined by the planner.
create or replace function new_rows(
  p_ids bigint[], p_only int[], p_known jsonb, p_now timestamptz, p_ceiling interval,
  p_name text[], p_version int[], p_kind text[], p_queue text[], p_priority smallint[], p_input text[],
  p_step text[], p_delay_ms bigint[], p_at timestamptz[], p_retention_ms bigint[],
  p_idempotency_key text[], p_unique_key bytea[], p_unique_scope text[],
  p_partition_key text[], p_rate_limit text[], p_weight int[], p_parent_id bigint[], p_child_of int[], p_position int[], p_trace text[],
  p_worker text, p_claim_id bigint, p_direct boolean[], p_behind boolean[]
) returns table (id bigint, status run_status, hold smallint, name text, version int, kind text, queue text, priority smallint,
  input jsonb, step text, eligible_at timestamptz, inserted_at timestamptz, retention interval, idempotency_key text, unique_key bytea,
  unique_scope run_status[], partition_key text, rate_limit text, weight int, parent_id bigint, child_of int, "position" int, trace text,
  locked_by text, claim_id bigint)
language sql stable as $$
  select i.id,
    case when i.direct then 'executing'::run_status else 'runnable'::run_status end,
    case when i.kind is null and i.known is null then 2::smallint when i.behind then 1::smallint else 0::smallint end,
    i.name,
    coalesce(i.version, (i.known ->> 'version')::int, 1),
    coalesce(i.kind, i.known ->> 'kind'),
    coalesce(i.queue, i.known ->> 'queue', case when i.kind is not null then 'default' end),
    coalesce(i.priority, (i.known ->> 'priority')::smallint, case when i.kind is not null then 0::smallint end),
    i.input::jsonb, i.step,
    coalesce(i.at, p_now + coalesce(i.delay_ms, 0) * interval '1 millisecond'),
    p_now,
    case when i.retention_ms is not null or i.kind is not null or i.known is not null then
      least(coalesce(i.retention_ms * interval '1 millisecond', (i.known ->> 'retention')::interval, '30 days'), p_ceiling) end,
    i.idempotency_key, i.unique_key,
    case when i.unique_key is not null then
      coalesce(i.unique_scope, '{runnable,executing,awaiting_signal,awaiting_children}')::run_status[] end,
    i.partition_key, i.rate_limit, case when i.rate_limit is not null then coalesce(i.weight, 1) end,
    i.parent_id, i.child_of, i.position, i.trace,
    case when i.direct then p_worker end,
    case when i.direct then p_claim_id end
  from (
    select u.*, p_ids[u.o] as id,
      case when u.kind is null then p_known -> (u.name || coalesce('@' || u.version, '')) end as known
    from unnest(p_name, p_version, p_kind, p_queue, p_priority, p_input, p_step, p_delay_ms, p_at, p_retention_ms,
                p_idempotency_key, p_unique_key, p_unique_scope, p_partition_key, p_rate_limit, p_weight,
                p_parent_id, p_child_of, p_position, p_trace, p_direct, p_behind) with ordinality
      u(name, version, kind, queue, priority, input, step, delay_ms, at, retention_ms,
        idempotency_key, unique_key, unique_scope, partition_key, rate_limit, weight,
        parent_id, child_of, position, trace, direct, behind, o)
    where p_only is null or u.o = any (p_only)) i
$$;
