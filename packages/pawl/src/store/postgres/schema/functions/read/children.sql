-- pawl: call
-- A page of the children of a run's last spawn, in order, after place p_after: at most 1,000 and
-- about 1 MiB (at least one).
-- `awaits` keeps the children that were not created because another run held their key. The holder
-- answers for them, as it is now, or as it was then if it was swept since. A rerun at the step that
-- sees the children sees those of the old run (`of`: its id and the number of its spawn). Rides
-- runs_children.
create or replace function children(p_run_id bigint, p_after int)
returns table ("position" int, id bigint, name text, status run_status, result text, error text, created boolean)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  v_parent record;
begin
  select coalesce((r.awaits -> 'of' ->> 0)::bigint, r.id) as id, coalesce((r.awaits -> 'of' ->> 1)::int, r.spawn) as spawn, r.awaits
    into v_parent from runs r where r.id = p_run_id;
  return query
    select p.position, p.id, p.name, p.status, p.result, p.error, p.created
    from (
      select c.*, sum(coalesce(octet_length(c.result), 0) + coalesce(octet_length(c.error), 0)) over (order by c.position) as bytes,
        row_number() over (order by c.position) as n
      from (
        select * from (
          select t.position, t.id, t.name, t.status, t.result::text as result, t.error::text as error, true as created
          from runs t
          where t.parent_id = v_parent.id and t.child_of = v_parent.spawn and t.position > p_after
          order by t.position limit 1000) made
        union all
        select (h.value ->> 'position')::int, (h.value ->> 'runId')::bigint, h.value ->> 'name',
          coalesce(holder.status, (h.value ->> 'status')::run_status), holder.result::text, holder.error::text, false
        from jsonb_array_elements(v_parent.awaits -> 'held') h
        left join lateral (select t.status, t.result, t.error from runs t
          where t.id = (h.value ->> 'runId')::bigint limit 1) holder on true
        where (h.value ->> 'position')::int > p_after
        order by 1 limit 1000) c) p
    where p.n = 1 or p.bytes <= 1048576
    order by p.position;
end $f$;
