-- pawl: inner
-- Starts the children of the spawns in a batch, for transitions whose guard holds. The caller
-- (apply_transitions, by decide_details) has locked the parents. A child whose key is taken is not
-- started: the answer notes the holder, and the parent does not wait for it.
-- Answers by position of the transition: {"1": {"children": all, "pending": started, "held":
-- [{position, runId, name, status}, …]}, …}.
create or replace function spawn_children(
  p_id bigint[], p_claim_id bigint[], p_turn bigint[], p_op text[], p_detail text[], p_locked bigint[]
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
    cross join lateral (select t.id, t.spawn from runs t where t.id = u.id
      and t.claim_id = u.claim_id and t.turn = u.turn and t.status = 'executing' and t.locked_by is not null limit 1) r
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
      from new_runs(v_runs, v_parent_id, v_child_of, v_position) s
      cross join lateral (select v_item[s.position] as item, v_position[s.position] as place) u
      left join lateral (select t.name from runs t where not s.created and t.id = s.id limit 1) holder on true
      group by u.item) g);
end $f$;
