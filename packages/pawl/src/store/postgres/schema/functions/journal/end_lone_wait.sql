-- pawl: inner
-- A workflow that is suspended for one wait alone, which has just ended (by its time, or by a signal with p_output): recorded here and
-- now, so that its body goes on without another call. Of several, the body decides which came first. The caller has locked the run.
-- Answers whether there was such a wait.
create or replace function end_lone_wait(p_run_id bigint, p_awaits jsonb, p_output jsonb, p_now timestamptz) returns boolean
language plpgsql as $f$
begin
  if jsonb_array_length(p_awaits -> 'steps') is distinct from 1 then
    return false;
  end if;
  update steps s set output = coalesce(p_output, 'null'), completed_at = p_now,
      seq = 1 + coalesce((select max(t.seq) from steps t where t.run_id = p_run_id), 0)
    where s.run_id = p_run_id and s.name = p_awaits -> 'steps' ->> 0 and (s.completed_at is null) is true
      and case when p_output is null then s.kind in ('sleep', 'wait') and s.due_at <= p_now else s.kind = 'wait' end;
  return found;
end $f$;
