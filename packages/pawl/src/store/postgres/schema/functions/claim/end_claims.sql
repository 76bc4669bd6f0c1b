-- pawl: inner
-- Ends the claims on runs that the caller has locked: an executing run becomes runnable, a
-- cancelled or failed run only loses its holder. Answers the ids.
-- p_crashes is 0 for a release. It is 1 for a crash, which also counts as an attempt and, from the
-- second on, delays the run by min(1 s · 2^crashes, 1 min).
-- If one row cannot be written, tries each row by itself. A run that re-enters its unique scope
-- while its key is taken gives the key up. Any other bad row stays as it is and is reported as a
-- warning. Then the next runs of the partition keys and of the concurrency limits are let in
-- (free_keys, free_slots).
create or replace function end_claims(p_id bigint[], p_crashes int) returns setof bigint
language plpgsql as $f$
declare
  v_now timestamptz := clock();
  v_id bigint;
  v_ended bigint[];
  v_keys text[];
  v_slotted bigint[];        -- those that have a concurrency limit
  v_constraint text;
begin
  begin
    -- into a variable: a rollback does not take back rows of RETURN QUERY
    with ended as (
      update runs r set
        locked_by = null, status = v.status, attempt = v.attempt, crashes = v.crashes, crash_seq = v.crash_seq, eligible_at = v.eligible_at
      from (select * from rows_after_claim(p_id, p_crashes, v_now) limit cardinality(p_id)) v
      where r.id = v.id and (r.locked_by is not null) is true
      returning r.id, r.partition_key, r.concurrency)
    select array_agg(ended.id), array_agg(ended.partition_key) filter (where ended.partition_key is not null),
        array_agg(ended.id) filter (where ended.concurrency is not null)
      into v_ended, v_keys, v_slotted from ended;
    if v_keys is not null then
      perform free_keys(v_keys, v_now);
    end if;
    if v_slotted is not null then
      perform free_slots(leave_slots(v_slotted), v_now);
    end if;
    return query select unnest(v_ended);
    return;
  exception when others then
    if not is_row_fault(sqlstate) then
      raise;
    end if;
  end;
  foreach v_id in array p_id loop
    for v_try in 1 .. 2 loop
      begin
        update runs r set
          locked_by = null, status = v.status, attempt = v.attempt, crashes = v.crashes, crash_seq = v.crash_seq, eligible_at = v.eligible_at,
          unique_key = case when v_try = 1 then r.unique_key end
        from (select * from rows_after_claim(array[v_id], p_crashes, v_now) limit 1) v
        where r.id = v.id and (r.locked_by is not null) is true
        returning array_remove(array[r.partition_key], null), case when r.concurrency is not null then array[r.id] end into v_keys, v_slotted;
        if found then
          if cardinality(v_keys) > 0 then
            perform free_keys(v_keys, v_now);
          end if;
          if v_slotted is not null then
            perform free_slots(leave_slots(v_slotted), v_now);
          end if;
          return next v_id;
        end if;
        exit;
      exception when others then
        if not is_row_fault(sqlstate) then
          raise;
        end if;
        get stacked diagnostics v_constraint = constraint_name;
        if v_try = 2 or v_constraint is distinct from 'runs_unique' then
          raise warning 'pawl: the claim on run % cannot be ended: %', v_id, sqlerrm;
          exit;
        end if;
      end;
    end loop;
  end loop;
end $f$;

-- The columns that a run has after its claim ended without an outcome, for end_claims.
create or replace function rows_after_claim(p_id bigint[], p_crashes int, p_now timestamptz)
returns table (id bigint, status run_status, attempt int, crashes int, crash_seq int, eligible_at timestamptz)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select r.id,
      case when r.status = 'executing' then 'runnable'::run_status else r.status end,
      case when r.status = 'executing' then r.attempt + least(p_crashes, 2147483647 - r.attempt) else r.attempt end,
      case when r.status = 'executing' then r.crashes + least(p_crashes, 2147483647 - r.crashes) else r.crashes end,
      r.crash_seq,
      case when r.status = 'executing' and p_crashes > 0 and r.crashes > 0
        then p_now + least(interval '1 second' * 2 ^ (least(r.crashes, 9) + 1), interval '1 minute')
        else r.eligible_at end
    from unnest(p_id) v(id)
    cross join lateral (
      select t.id, t.status, t.attempt, t.eligible_at, greatest(t.crash_seq, j.seq) as crash_seq,
        -- recorded steps are progress
        case when j.seq > t.crash_seq then 0 else t.crashes end as crashes
      from runs t
      left join lateral (select max(s.seq) as seq from steps s
        where p_crashes > 0 and (t.kind = 'workflow') is true and s.run_id = t.id) j on true
      where t.id = v.id limit 1) r;
end $f$;
