-- pawl: inner
-- Decides for each of these runs whether and from where it can be repeated. One row per position:
--   verdict   rerun, not_found, active (not terminal), no_steps (`from` for a job), no_state
--             (`state` for a job or workflow), no_input (`input` in the middle of a machine),
--             unknown_step (`from` is not in the journal), waited_for_children, signals_lost
--   is_fresh  begin at the start: nothing of the old run but its input is copied
--   is_same   the same step of a machine again, with the signals and children that it had
--   cut       of a workflow: copy the journal entries before this seq (null: all)
--   failed    of a workflow: leave out failed entries from this seq on (null: none)
-- The failed step of a workflow is the one that its error names. An error of the body names none:
-- then it is every failed step after which the body called no other. A step counts as called after
-- it if it started later; the 5 ms are for the rounding of durations.
-- Rides the primary keys of runs and steps.
create or replace function plan_reruns(p_id bigint[], p_from text, p_has_input boolean, p_has_state boolean)
returns table ("position" int, id bigint, verdict text, is_fresh boolean, is_same boolean, cut int, failed int)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select u.o::int, u.id,
      case
        when r.id is null then 'not_found'
        when r.status not in ('done', 'failed', 'cancelled') then 'active'
        when p_has_state and r.kind is distinct from 'machine' then 'no_state'
        when p_has_input and r.kind = 'machine' and not f.is_fresh then 'no_input'
        when p_from <> 'start' and (r.kind is null or r.kind = 'job') then 'no_steps'
        when r.kind = 'workflow' and not f.is_fresh and p_from is not null and not coalesce(c.is_known, false) then 'unknown_step'
        when f.is_same and r.awaits ->> 'was' = 'awaiting_children' then 'waited_for_children'
        when f.is_same and r.awaits ? 'names' and not r.awaits ? 'kept' then 'signals_lost'
        else 'rerun' end,
      f.is_fresh, f.is_same, c.cut,
      case when r.kind = 'workflow' and r.status = 'failed' and p_from is null then coalesce(
        (select s.seq from steps s where s.run_id = r.id and s.name = r.error ->> 'step' and s.error is not null),
        (select min(s.seq) from steps s where s.run_id = r.id and s.completed_at is not null and s.error is not null
          and not exists (select 1 from steps a where a.run_id = r.id and coalesce(a.seq > s.seq, true)
            and a.started_at > s.completed_at - interval '5 milliseconds'))) end
    from unnest(p_id) with ordinality u(id, o)
    left join lateral (select t.* from runs t where t.id = u.id and t.id < first_message_id() limit 1) r on true
    cross join lateral (
      select b.is_fresh, coalesce(r.kind = 'machine' and not b.is_fresh and coalesce(p_from = r.step, true), false) as is_same
      from (select coalesce(r.kind is null or r.kind = 'job' or p_from = 'start'
        or (p_from is null and (r.status = 'done' or (r.kind = 'machine' and r.step is null))), false) as is_fresh) b) f
    left join lateral (select true as is_known, coalesce(s.seq, 2147483647) as cut from steps s
      where s.run_id = r.id and s.name = p_from and r.kind = 'workflow' and not f.is_fresh) c on true;
end $f$;
