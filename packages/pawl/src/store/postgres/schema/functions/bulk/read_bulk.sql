-- pawl: call
-- Operations, newest first: the one with p_id, or (null) a page before p_before. Rides the primary
-- key.
create or replace function read_bulk(p_id bigint, p_before bigint, p_limit int)
returns table (id bigint, status text, action text, filter text, options text, who text, counted bigint, done bigint,
  skipped bigint, failed bigint, error text, started_at text, completed_at text)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select o.id, o.status, o.action, o.filter::text, o.options::text, o.actor ->> 'who', o.counted, o.done, o.skipped, o.failed, o.error,
      iso(o.started_at), iso(o.completed_at)
    from bulk_operations o
    where case when p_id is null then o.id < coalesce(p_before, 9223372036854775807) else o.id = p_id end
    order by o.id desc limit p_limit;
end $f$;

-- A page of the runs of an operation after the run p_after, by id; with p_outcome only those. Rides
-- the primary key.
create or replace function read_bulk_results(p_id bigint, p_outcome text, p_after bigint, p_limit int)
returns table (run_id bigint, outcome text, reason text, rerun_id bigint)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select b.run_id, coalesce(b.outcome, 'pending'), b.reason, b.rerun_id from bulk_results b
    where b.operation_id = p_id and b.run_id > p_after and (p_outcome is null or coalesce(b.outcome, 'pending') = p_outcome)
    order by b.run_id limit p_limit;
end $f$;
