-- pawl: inner
-- Deletes terminal runs with journal and inbox, for a bulk operation. Skips a run that has not ended
-- (active), that a worker still holds (busy), or that a live parent is about to see (awaited).
-- Answers by position deleted, or that. Locks them in id order.
create or replace function delete_runs(p_id bigint[]) returns text[] language plpgsql as $f$
declare
  v_verdicts text[];
  v_ids bigint[];
begin
  perform 1 from (select u.id from unnest(p_id) u(id) order by u.id) v
    cross join lateral (select 1 from runs r where r.id = v.id limit 1 for update) l;
  select array_agg(d.verdict order by u.o), array_agg(u.id) filter (where d.verdict = 'deleted')
  into v_verdicts, v_ids
  from unnest(p_id) with ordinality u(id, o)
  left join lateral (select t.id, t.status, t.locked_by, t.parent_id, t.child_of from runs t where t.id = u.id limit 1) r on true
  cross join lateral (select case
    when r.id is null then 'not_found'
    when r.status not in ('done', 'failed', 'cancelled') then 'active'
    when r.locked_by is not null then 'busy'
    when (select p.id from runs p where p.id = r.parent_id and (p.spawn = r.child_of and p.awaits ? 'children'
      and p.status not in ('done', 'failed', 'cancelled')) is true limit 1) is not null then 'awaited'
    else 'deleted' end as verdict) d;
  perform forget_runs(v_ids);
  return v_verdicts;
end $f$;

-- Deletes runs that the caller has locked, with all that belongs to them. For sweep and delete_runs.
create or replace function forget_runs(p_id bigint[]) returns void language plpgsql as $f$
declare
  v_marked bigint[];
begin
  perform count_deleted(p_id);
  delete from steps s using (select u.id from unnest(p_id) u(id) limit cardinality(p_id)) v
    where s.run_id = v.id;
  delete from signals s using (select u.id from unnest(p_id) u(id) limit cardinality(p_id)) v
    where s.run_id = v.id;
  v_marked := array(select u.id from unnest(p_id) u(id)
    cross join lateral (select r.id from runs r where r.id = u.id and r.has_extras is true limit 1) r);
  if v_marked <> '{}' then
    delete from tags t using (select u.id from unnest(v_marked) u(id) limit cardinality(v_marked)) v
      where t.run_id = v.id;
    delete from extras x using (select u.id from unnest(v_marked) u(id) limit cardinality(v_marked)) v
      where x.run_id = v.id;
  end if;
  delete from runs r using (select u.id from unnest(p_id) u(id) limit cardinality(p_id)) v
    where r.id = v.id;
end $f$;
