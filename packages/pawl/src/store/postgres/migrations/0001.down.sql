-- Takes version 1 away: everything in it, with all runs.
drop view workflow_step, workflow_run;
drop table runs, signals, steps, definitions, workers, limits, buckets, subscriptions, settings cascade;
drop sequence run_ids;
do $do$
declare
  f record;
begin
  for f in select p.oid::regprocedure as signature from pg_proc p where p.pronamespace = quote_ident(current_schema())::regnamespace loop
    execute format('drop function %s cascade', f.signature);
  end loop;
end $do$;
drop type run_record;
drop type run_status;
