-- pawl: call; lock_timeout 100ms
-- A worker calls this when claim has failed and no outage is the reason. It finds those of the
-- first 2,000 due runs that make claim fail by themselves. It sets them aside (hold bit 8), so that
-- they keep no other run of the queue waiting.
-- Claims each run by itself in a subtransaction, and undoes that. Answers the runs set aside with
-- their error, which the run keeps for `why`. A run that another transaction has locked is left to
-- the next call. Rides runs_claim.
create or replace function set_aside(p_queue text, p_worker text, p_names text[], p_versions int[])
returns table (id bigint, code text, message text) language plpgsql as $f$
#variable_conflict use_column
declare
  c_runs constant int := 2000;
  v_now timestamptz := clock();
  v_run record;
begin
  perform require_read_committed();
  for v_run in
    select r.id, s.name, s.version, r.priority from unnest(p_names, p_versions) s(name, version) cross join lateral (
      select t.id, t.priority, t.eligible_at from runs t
      where t.queue = p_queue and t.name = s.name and t.version = s.version
        and case when t.status in ('runnable', 'awaiting_signal') then t.hold = 0 else false end and t.eligible_at <= v_now
      order by t.priority, t.eligible_at, t.id limit c_runs) r
    order by r.priority, r.eligible_at, r.id limit c_runs
  loop
    id := v_run.id;
    begin
      perform claim(p_queue, p_worker, 0, 1, array[v_run.name], array[v_run.version], v_run.priority, null, true, id);
      raise exception 'undone' using errcode = 'PW000';
    exception
      when sqlstate 'PW000' or lock_not_available then
        null;
      when others then
        if not is_row_fault(sqlstate) and sqlstate not in ('XX001', 'XX002') then
          raise;
        end if;
        code := sqlstate;
        message := sqlerrm;
        if set_one_aside(id, code, message) then
          return next;
        end if;
    end;
  end loop;
end $f$;
