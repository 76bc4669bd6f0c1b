-- pawl: inner
-- Ends the claims on runs that the caller has locked: executing becomes runnable, cancelled only loses its holder.
-- p_crashes is 0 for a release; 1 for a crash, which also counts as an attempt and is put off by
-- min(1 s · 2^crashes, 1 min) from the second on. If one row cannot be written, each is tried by itself: a run that
-- re-enters its unique scope while its key is taken gives the key up, any other bad row is left and reported. The next
-- runs of their partition keys are let in.
create or replace function let_go(p_id bigint[], p_crashes int) returns setof bigint
language plpgsql as $f$
declare
  v_now timestamptz := now();
  v_id bigint;
  v_ended bigint[];
  v_keys text[];
  v_constraint text;
begin
  begin
    -- into a variable: what RETURN QUERY has handed out, a rollback does not take back
    with ended as (
      update runs r set
        locked_by = null, status = v.status, attempt = v.attempt, crashes = v.crashes, crash_seq = v.crash_seq, eligible_at = v.eligible_at
      from (select * from claims_ending(p_id, p_crashes, v_now) limit cardinality(p_id)) v
      where r.id = v.id and (r.locked_by is not null) is true
      returning r.id, r.partition_key)
    select array_agg(ended.id), array_agg(ended.partition_key) filter (where ended.partition_key is not null)
      into v_ended, v_keys from ended;
    if v_keys is not null then
      perform free_keys(v_keys, v_now);
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
        from (select * from claims_ending(array[v_id], p_crashes, v_now) limit 1) v
        where r.id = v.id and (r.locked_by is not null) is true
        returning array_remove(array[r.partition_key], null) into v_keys;
        if found then
          if cardinality(v_keys) > 0 then
            perform free_keys(v_keys, v_now);
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
          raise warning 'pawl: run % cannot be let go: %', v_id, sqlerrm;
          exit;
        end if;
      end;
    end loop;
  end loop;
end $f$;
