-- Starts runs that are given as JSON, one object per run, with the parent, the number of its spawn and the place in it at the
-- same positions (see start, whose answer this is).
create function new_runs(p_shard smallint, p_runs jsonb, p_parent_id bigint[], p_child_of int[], p_position int[])
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
    from start(p_shard, v_name, v_version, v_kind, v_queue, v_priority, v_input, v_step, v_delay_ms, v_at, v_retention_ms,
      v_idempotency_key, v_unique_key, v_unique_scope, v_partition_key, v_rate_limit, v_weight, p_parent_id, p_child_of,
      p_position, v_trace, true, null, null, null) s;
end $f$;

-- Starts the children of the spawns in a batch of transitions (see apply_transitions, which has locked the parents), of those
-- whose guard holds. A child whose key is taken is not started: the holder is noted, and not waited for.
-- Answers by position of the transition: {"1": {"children": all, "pending": started, "held": [{position, runId, name, status}, …]}, …}.
create function spawn_children(
  p_shard smallint, p_id bigint[], p_claim_id bigint[], p_turn bigint[], p_op text[], p_detail text[], p_locked bigint[]
) returns jsonb language plpgsql as $f$
declare
  v_runs jsonb; v_parent_id bigint[]; v_child_of int[]; v_position int[]; v_item int[];
begin
  select jsonb_agg(f.c order by f.n), array_agg(f.parent_id order by f.n), array_agg(f.child_of order by f.n),
    array_agg(f.place order by f.n), array_agg(f.item order by f.n)
  into v_runs, v_parent_id, v_child_of, v_position, v_item
  from (
    select child.c, r.id as parent_id, r.spawn + 1 as child_of, child.place::int - 1 as place, u.o::int as item,
      row_number() over (order by u.o, child.place) as n
    from unnest(p_id, p_claim_id, p_turn, p_op, p_detail) with ordinality u(id, claim_id, turn, op, detail, o)
    cross join lateral (select t.id, t.spawn from runs t where t.shard = p_shard and t.id = u.id
      and t.claim_id = u.claim_id and t.turn = u.turn and t.status = 'executing' limit 1) r
    cross join lateral jsonb_array_elements(u.detail::jsonb -> 'children') with ordinality child(c, place)
    where u.op = 'spawn' and (p_locked is null or u.id = any (p_locked))) f;
  if v_runs is null then
    return '{}';
  end if;
  return (
    select jsonb_object_agg(g.item::text, jsonb_build_object('children', g.children, 'pending', g.pending, 'held', g.held))
    from (
      select u.item, count(*) as children, count(*) filter (where s.created) as pending,
        coalesce(jsonb_agg(jsonb_build_object('position', u.place, 'runId', s.id::text, 'name', holder.name, 'status', s.status)
          order by u.place) filter (where not s.created), '[]') as held
      from new_runs(p_shard, v_runs, v_parent_id, v_child_of, v_position) s
      cross join lateral (select v_item[s.position] as item, v_position[s.position] as place) u
      left join lateral (select t.name from runs t where not s.created and t.shard = p_shard and t.id = s.id limit 1) holder on true
      group by u.item) g);
end $f$;
