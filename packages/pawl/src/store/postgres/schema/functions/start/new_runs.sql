-- pawl: inner
-- Starts runs that are given as JSON, one object per run with the members of new_run and its input,
-- with the parent, the number of its spawn and the place in it at the same positions. Answers like
-- start_runs.
create or replace function new_runs(p_runs jsonb, p_parent_id bigint[], p_child_of int[], p_position int[])
returns table ("position" int, id bigint, created boolean, status run_status) language plpgsql as $f$
#variable_conflict use_column
declare
  v_runs new_run[];
  v_input text[];
begin
  select array_agg(jsonb_populate_record(null::new_run, u.run || jsonb_build_object(
      'parent_id', p_parent_id[u.n], 'child_of', p_child_of[u.n], 'position', p_position[u.n])) order by u.n),
    array_agg(u.run ->> 'input' order by u.n)
  into v_runs, v_input
  from jsonb_array_elements(p_runs) with ordinality u(run, n);
  return query
    select s.position, s.id, s.created, s.status from start_runs(v_runs, v_input, true, true, null, null) s;
end $f$;
