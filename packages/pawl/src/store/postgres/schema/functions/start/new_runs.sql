-- pawl: inner
-- Starts runs that are given as JSON, one object per run, with the parent, the number of its spawn and the place in it at the
-- same positions (see start, whose answer this is).
create or replace function new_runs(p_runs jsonb, p_parent_id bigint[], p_child_of int[], p_position int[])
returns table ("position" int, id bigint, created boolean, status run_status) language plpgsql as $f$
#variable_conflict use_column
declare
  v_name text[]; v_version int[]; v_kind text[]; v_queue text[]; v_priority smallint[]; v_input text[]; v_step text[];
  v_delay_ms bigint[]; v_at timestamptz[]; v_retention_ms bigint[]; v_idempotency_key text[]; v_unique_key bytea[];
  v_unique_scope text[]; v_partition_key text[]; v_rate_limit text[]; v_weight int[]; v_trace text[];
begin
  select array_agg(c ->> 'name' order by n), array_agg((c ->> 'version')::int order by n), array_agg(c ->> 'kind' order by n),
    array_agg(c ->> 'queue' order by n), array_agg((c ->> 'priority')::smallint order by n), array_agg(c ->> 'input' order by n),
    array_agg(c ->> 'step' order by n), array_agg((c ->> 'delayMs')::bigint order by n), array_agg((c ->> 'at')::timestamptz order by n),
    array_agg((c ->> 'retentionMs')::bigint order by n), array_agg(c ->> 'idempotencyKey' order by n),
    array_agg(decode(c ->> 'uniqueKey', 'hex') order by n), array_agg(c ->> 'uniqueScope' order by n),
    array_agg(c ->> 'partitionKey' order by n), array_agg(c ->> 'rateLimit' order by n), array_agg((c ->> 'weight')::int order by n),
    array_agg(c ->> 'trace' order by n)
  into v_name, v_version, v_kind, v_queue, v_priority, v_input, v_step, v_delay_ms, v_at, v_retention_ms, v_idempotency_key,
    v_unique_key, v_unique_scope, v_partition_key, v_rate_limit, v_weight, v_trace
  from jsonb_array_elements(p_runs) with ordinality u(c, n);
  return query
    select s.position, s.id, s.created, s.status
    from start(v_name, v_version, v_kind, v_queue, v_priority, v_input, v_step, v_delay_ms, v_at, v_retention_ms,
      v_idempotency_key, v_unique_key, v_unique_scope, v_partition_key, v_rate_limit, v_weight, p_parent_id, p_child_of,
      p_position, v_trace, true, null, null, null, true) s;
end $f$;
