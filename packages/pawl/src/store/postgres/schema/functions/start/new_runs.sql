-- pawl: inner
-- Starts runs that are given as JSON, one object per run with the members of new_run and its input,
-- with the parent, the number of its spawn and the place in it at the same positions. Answers like
-- start_runs. A child takes the tags of its parent, unless its options name tags.
create or replace function new_runs(p_runs jsonb, p_parent_id bigint[], p_child_of int[], p_position int[])
returns table ("position" int, id bigint, created boolean, status run_status) language plpgsql as $f$
#variable_conflict use_column
declare
  v_runs new_run[];
  v_input text[];
  v_tags jsonb;              -- of the parents that have any, by id
begin
  select jsonb_object_agg(t.id, t.tags) into v_tags
  from (select distinct u.id from unnest(p_parent_id) u(id)) v
  cross join lateral (select r.id, tags_of(r.id) as tags from runs r where r.id = v.id and r.has_extras is true limit 1) t
  where t.tags is not null;
  select array_agg(jsonb_populate_record(null::new_run, u.run || jsonb_build_object(
      'parent_id', p_parent_id[u.n], 'child_of', p_child_of[u.n], 'position', p_position[u.n])) order by u.n),
    array_agg(u.run ->> 'input' order by u.n)
  into v_runs, v_input
  from (select case when v_tags ? p_parent_id[e.n]::text and not coalesce((e.run ->> 'options')::jsonb, '{}') ? 'tags'
      then e.run || jsonb_build_object('options', (coalesce((e.run ->> 'options')::jsonb, '{}')
        || jsonb_build_object('tags', v_tags -> p_parent_id[e.n]::text))::text) else e.run end as run, e.n
    from jsonb_array_elements(p_runs) with ordinality e(run, n)) u;
  return query
    select s.position, s.id, s.created, s.status from start_runs(v_runs, v_input, true, true, null, null) s;
end $f$;
