-- pawl: inner
-- Retention of what operators leave behind, part of sweep: deletes up to p_limit lines of the action
-- log after 90 days, and up to p_limit results of bulk operations 30 days after their end. Looks at
-- the oldest lines and the 1,000 oldest operations only, so that it never walks over those that stay.
-- An operation that does not end keeps no other.
create or replace function sweep_log(p_limit int, p_now timestamptz) returns void language plpgsql as $f$
declare
  c_read constant int := 1000;
  v_old bigint[];
begin
  delete from actions a using (select o.id from (select t.id, t.at from actions t order by t.id limit p_limit) o
      where o.at < p_now - interval '90 days' limit p_limit) v
    where a.id = v.id;
  v_old := array(select o.id from (select t.id, t.completed_at from bulk_operations t order by t.id limit c_read) o
    where o.completed_at < p_now - interval '30 days' order by o.id);
  if cardinality(v_old) > 0 then
    delete from bulk_results b using (select t.operation_id, t.run_id from unnest(v_old) o(id) cross join lateral (
        select r.operation_id, r.run_id from bulk_results r where r.operation_id = o.id order by r.run_id limit p_limit) t limit p_limit) v
      where b.operation_id = v.operation_id and b.run_id = v.run_id;
    delete from bulk_operations o where o.id = any (v_old)
      and not exists (select 1 from bulk_results b where b.operation_id = o.id);
  end if;
end $f$;
