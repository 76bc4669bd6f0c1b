-- pawl: call; lock_timeout 100ms
-- Fails live runs past their deadline with the code DeadlineExceeded, whatever they do: up to
-- p_limit, by deadline, or (p_only) those of these runs that are overdue. Part of recover; a worker
-- also calls it when the deadline of a run that it executes has come by its own timer.
-- An executing run keeps its holder until its worker has released it (end_runs). Its children go
-- on, as after a cancel without cascade. Fails nothing while the database is held.
-- Answers the failed runs as JSON [{id, name, parentId, startedMs, error}, …] (null: none), the
-- claimable runs made, by queue, and the milliseconds until the next deadline (null: none).
-- Finds the runs without a lock, locks them and their parents in id order with SKIP LOCKED, and
-- decides in later statements. If one run cannot be failed, tries each by itself. Rides
-- extras_deadline.
create or replace function fail_overdue(p_limit int, p_only bigint[] default null)
returns table (failed text, claimable text, due_ms double precision) language plpgsql as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
  v_ids bigint[];
  v_locked bigint[];
  v_failed bigint[] := '{}';
  v_claimable jsonb := '[]';
  v_ended text;
  v_id bigint;
  v_error jsonb;
begin
  perform require_read_committed();
  if is_held() then
    return next;
    return;
  end if;
  v_ids := case when p_only is not null then p_only else array(
    select x.run_id from extras x where x.deadline_at <= v_now and not x.ended order by x.deadline_at limit p_limit) end;
  if v_ids <> '{}' then
    v_locked := array(
      select l.id from (
        select u.id from unnest(v_ids) u(id)
        union
        select r.parent_id from unnest(v_ids) u(id) cross join lateral (select t.parent_id from runs t where t.id = u.id limit 1) r
        where r.parent_id is not null
        order by 1) v
      cross join lateral (select r.id from runs r where r.id = v.id limit 1 for no key update skip locked) l);
    v_ids := array(
      select r.id from unnest(v_ids) u(id)
      cross join lateral (select t.id, t.parent_id from runs t where t.id = u.id
        and (t.status not in ('done', 'failed', 'cancelled')) is true limit 1) r
      join lateral (select x.deadline_at from extras x where x.run_id = r.id limit 1) x on x.deadline_at <= v_now
      where r.id = any (v_locked) and (r.parent_id is null or r.parent_id = any (v_locked)
        or (select p.id from runs p where p.id = r.parent_id limit 1) is null)
      order by r.id);
  end if;
  if v_ids <> '{}' then
    perform require_durable_commit();
    v_error := jsonb_build_object('name', 'DeadlineExceeded', 'code', 'DeadlineExceeded',
      'message', 'the run did not end within its timeout: raise the timeout of its start or definition, or find out with its steps what took long');
    begin
      select e.claimable into v_ended from end_runs(v_ids, 'failed', v_error, v_now) e;
      v_claimable := v_ended;
      v_failed := v_ids;
    exception when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
      foreach v_id in array v_ids loop
        begin
          select e.claimable into v_ended from end_runs(array[v_id], 'failed', v_error, v_now) e;
          v_claimable := v_claimable || v_ended::jsonb;
          v_failed := v_failed || v_id;
        exception when others then
          if not is_row_fault(sqlstate) then
            raise;
          end if;
          raise warning 'pawl: run % is past its deadline and cannot be failed: %', v_id, sqlerrm;
        end;
      end loop;
    end;
    claimable := nullif(v_claimable, '[]')::text;
    select jsonb_agg(jsonb_build_object('id', r.id::text, 'name', r.name, 'parentId', r.parent_id::text,
        'startedMs', date_part('epoch', r.inserted_at) * 1000, 'error', r.error))::text into failed
      from unnest(v_failed) u(id) cross join lateral (select t.* from runs t where t.id = u.id limit 1) r;
  end if;
  if p_only is not null then
    due_ms := (select min(ms_until(x.deadline_at, v_now)) from unnest(p_only) u(id)
      cross join lateral (select t.deadline_at, t.ended from extras t where t.run_id = u.id limit 1) x where not x.ended);
  else
    due_ms := (select ms_until(x.deadline_at, v_now) from extras x
      where x.deadline_at is not null and not x.ended order by x.deadline_at limit 1);
  end if;
  return next;
end $f$;
