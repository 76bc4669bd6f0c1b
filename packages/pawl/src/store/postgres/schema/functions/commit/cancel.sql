-- pawl: call; lock_timeout 100ms
-- Cancels a run, see cancel_run. If a row stays locked, it fails with 55P03, and the client sends it
-- again.
create or replace function cancel(p_id bigint, p_reason text, p_cascade boolean)
returns table (verdict text, status run_status, cancelled text, names text, lost text, claimable text)
language plpgsql as $f$
begin
  return query select * from cancel_run(p_id, p_reason, p_cascade);
end $f$;
