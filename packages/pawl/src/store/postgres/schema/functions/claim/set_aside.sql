-- pawl: call; lock_timeout 100ms
-- A worker calls this when claim has failed and no outage is the reason. Of the first 2,000 due runs, those that make claim
-- fail by themselves are set aside (hold bit 8), so that they keep no other run of the queue waiting. Each run is claimed by
-- itself in a subtransaction, which is undone. Answers the runs set aside, with the error, which the run keeps for `why`. A run
-- that somebody has locked is left for the next call.
create or replace function set_aside(p_queue text, p_worker text, p_names text[], p_versions int[])
returns table (id bigint, code text, message text) language plpgsql as $f$
#variable_conflict use_column
declare
  c_runs constant int := 2000;
  v_now timestamptz := now();
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
