-- pawl: inner
-- Retention of what operators leave behind, part of sweep: deletes up to p_limit lines of the action
-- log after 90 days, and up to p_limit results of bulk operations 30 days after their end. Looks at
-- the oldest only, so that it never walks over those that stay.
create or replace function sweep_log(p_limit int, p_now timestamptz) returns void language plpgsql as $f$
declare
  v_operation bigint;
begin
  delete from actions a using (select o.id from (select t.id, t.at from actions t order by t.id limit p_limit) o
      where o.at < p_now - interval '90 days' limit p_limit) v
    where a.id = v.id;
  select o.id into v_operation from (select t.id, t.completed_at from bulk_operations t order by t.id limit 1) o
    where o.completed_at < p_now - interval '30 days';
  if v_operation is not null then
    delete from bulk_results b using (select t.run_id from bulk_results t where t.operation_id = v_operation order by t.run_id limit p_limit) v
      where b.operation_id = v_operation and b.run_id = v.run_id;
    delete from bulk_operations o where o.id = v_operation
      and not exists (select 1 from bulk_results b where b.operation_id = v_operation);
  end if;
end $f$;
