-- pawl: call; lock_timeout 100ms
-- One batch of an open operation that nobody else works on. If there are several, chance decides,
-- so that one that cannot go on delays no other. It walks the primary key up to `upto` and acts on
-- the runs that match: it reads at most 2,000 runs a call and acts on at most p_limit. The batch, its results and the place where it stopped are one transaction. So a
-- crash undoes a batch whole, and each run is acted on once, whoever dies when.
-- If one run makes the batch fail, it acts on each by itself: that run is noted as failed, with the
-- reason. A run that stays locked is tried again, after all others. An operation that fails as a
-- whole is given up with its error, so that the next one gets its turn.
-- Answers whether to call again at once, whether runs became claimable, and of its batch the
-- operation, its action, and how many runs were done, skipped and failed. Does nothing while the
-- database is held. Rides bulk_open, bulk_pending and the primary key.
create or replace function work_bulk(p_limit int) returns table (again boolean, woke boolean, id bigint, action text, done int, skipped int, failed int)
language plpgsql as $f$
#variable_conflict use_column
declare
  v_op bulk_operations;
begin
  again := false;
  woke := false;
  perform require_read_committed();
  if not exists (select 1 from bulk_operations o where o.completed_at is null) or is_held() then
    return next;
    return;
  end if;
  select o.* into v_op from bulk_operations o where o.completed_at is null order by random() limit 1 for update skip locked;
  if not found then
    return next;
    return;
  end if;
  perform require_durable_commit();
  begin
    select w.again, w.woke, v_op.id, v_op.action, w.done, w.skipped, w.failed into again, woke, id, action, done, skipped, failed
      from work_on_bulk(v_op, p_limit) w;
  exception when others then
    if not is_row_fault(sqlstate) then
      raise;
    end if;
    -- somebody has a whole table locked, such as a migration: it goes on later
    again := sqlstate <> '55P03';
    woke := false;
    if again then
      update bulk_operations o set status = 'failed', completed_at = clock(), error = left(sqlerrm, 1000) where o.id = v_op.id;
    end if;
  end;
  return next;
end $f$;

-- One batch of this operation, which the caller has locked.
create or replace function work_on_bulk(
  p_op bulk_operations, p_limit int, out again boolean, out woke boolean, out done int, out skipped int, out failed int)
language plpgsql as $f$
declare
  c_read constant int := 2000;
  v_most int := case when p_op.action = 'cancel' then least(p_limit, 100) else p_limit end;
  v_end bigint;
  v_ids bigint[];
  v_acted record;
begin
  again := true;
  woke := false;
  done := 0;
  skipped := 0;
  failed := 0;
  select max(s.id) into v_end
    from (select r.id from runs r where r.id > p_op.cursor and r.id <= p_op.upto order by r.id limit c_read) s;
  if v_end is not null then
    v_ids := array(select m.id from bulk_matches(p_op.filter, p_op.cursor, v_end, v_most) m(id));
    if cardinality(v_ids) = v_most then
      v_end := v_ids[v_most];
    end if;
  else
    v_ids := array(select b.run_id from bulk_results b where b.operation_id = p_op.id and b.outcome is null
      order by b.tries, b.run_id limit v_most);
  end if;

  if cardinality(v_ids) > 0 then
    select a.* into v_acted from act_on_runs(p_op, v_ids) a;
    woke := v_acted.woke;
    if v_end is not null then
      insert into bulk_results (operation_id, run_id, outcome, reason, rerun_id)
        select p_op.id, u.id, u.outcome, u.reason, u.rerun_id
        from unnest(v_ids, v_acted.outcome, v_acted.reason, v_acted.rerun_id) u(id, outcome, reason, rerun_id);
    else
      update bulk_results b set outcome = v.outcome, reason = v.reason, rerun_id = v.rerun_id, tries = least(b.tries, 32766) + 1
        from (select u.* from unnest(v_ids, v_acted.outcome, v_acted.reason, v_acted.rerun_id) u(id, outcome, reason, rerun_id)
          limit cardinality(v_ids)) v
        where b.operation_id = p_op.id and b.run_id = v.id;
    end if;
    select count(*) filter (where u.outcome = 'done'), count(*) filter (where u.outcome = 'skipped'), count(*) filter (where u.outcome = 'failed')
      into done, skipped, failed from unnest(v_acted.outcome) u(outcome);
    -- only locked runs are left: they need time
    again := v_end is not null or done + skipped + failed > 0;
  end if;
  update bulk_operations o set cursor = coalesce(v_end, o.cursor),
      done = o.done + work_on_bulk.done, skipped = o.skipped + work_on_bulk.skipped, failed = o.failed + work_on_bulk.failed,
      worked_at = case when again then clock() else o.worked_at end,
      status = case when v_end is null and cardinality(v_ids) = 0 then 'completed' else o.status end,
      completed_at = case when v_end is null and cardinality(v_ids) = 0 then clock() end
    where o.id = p_op.id;
end $f$;
