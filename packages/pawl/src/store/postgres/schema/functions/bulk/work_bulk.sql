-- pawl: call; lock_timeout 100ms
-- One batch of an open operation that nobody else works on; several take turns. First it collects the runs: it
-- walks the primary key up to `upto`, 10,000 runs a call, and notes those that match. Then it acts
-- on them, up to p_limit a call. The batch, its results and the progress are one transaction. So a
-- crash undoes a batch whole, and each run is acted on once, whoever dies when.
-- If one run makes the batch fail, it acts on each by itself: that run is noted as failed, with the
-- reason. A run that stays locked is tried again, after all others.
-- An operation that fails as a whole is given up with its error, so that the next one gets its turn.
-- Answers whether to call again at once, and the queues that got work, as JSON.
-- Does nothing while the database is held. Rides bulk_open, bulk_pending and the primary key.
create or replace function work_bulk(p_limit int) returns table (again boolean, queues text)
language plpgsql as $f$
#variable_conflict use_column
declare
  v_op bulk_operations;
begin
  again := false;
  queues := '[]';
  perform require_read_committed();
  if not exists (select 1 from bulk_operations o where o.completed_at is null) or is_held() then
    return next;
    return;
  end if;
  select o.* into v_op from bulk_operations o where o.completed_at is null order by o.worked_at, o.id limit 1 for update skip locked;
  if not found then
    return next;
    return;
  end if;
  perform require_durable_commit();
  update bulk_operations o set worked_at = clock_timestamp() where o.id = v_op.id;
  begin
    select w.again, w.queues into again, queues from work_on_bulk(v_op, p_limit) w;
  exception when others then
    if not is_row_fault(sqlstate) then
      raise;
    end if;
    update bulk_operations o set status = 'failed', completed_at = clock(), error = left(sqlerrm, 1000) where o.id = v_op.id;
    again := true;
  end;
  return next;
end $f$;

-- One batch of this operation, which the caller has locked.
create or replace function work_on_bulk(p_op bulk_operations, p_limit int, out again boolean, out queues text)
language plpgsql as $f$
declare
  c_scanned constant int := 10000;
  v_ids bigint[];
  v_last bigint;
  v_count bigint;
  v_acted jsonb;
begin
  again := true;
  queues := '[]';
  if p_op.status = 'collecting' then
    select max(s.id), count(*) into v_last, v_count
      from (select r.id from runs r where r.id > p_op.cursor and r.id <= p_op.upto order by r.id limit c_scanned) s;
    insert into bulk_results (operation_id, run_id) select p_op.id, m.id from bulk_matches(p_op.filter, p_op.cursor, v_last) m(id);
    get diagnostics v_count = row_count;
    update bulk_operations o set matched = o.matched + v_count, cursor = coalesce(v_last, o.upto),
        status = case when v_last is null or v_last >= o.upto then 'working' else o.status end
      where o.id = p_op.id;
    return;
  end if;

  v_ids := array(select b.run_id from bulk_results b where b.operation_id = p_op.id and b.outcome is null
    order by b.tries, b.run_id limit case when p_op.action = 'cancel' then least(p_limit, 100) else p_limit end);
  if cardinality(v_ids) = 0 then
    update bulk_operations o set status = 'completed', completed_at = clock() where o.id = p_op.id;
    return;
  end if;
  v_acted := act_on_runs(p_op, v_ids);
  update bulk_results b set outcome = v.outcome, reason = v.reason, rerun_id = v.rerun_id, tries = least(b.tries + v.tries, 32767)
    from (select u.* from jsonb_to_recordset(v_acted -> 'results')
      u(run_id bigint, outcome text, reason text, rerun_id bigint, tries int) limit cardinality(v_ids)) v
    where b.operation_id = p_op.id and b.run_id = v.run_id;
  update bulk_operations o set done = o.done + v.done, skipped = o.skipped + v.skipped, failed = o.failed + v.failed
    from (select count(*) filter (where u.outcome = 'done') as done, count(*) filter (where u.outcome = 'skipped') as skipped,
        count(*) filter (where u.outcome = 'failed') as failed, count(u.outcome) as all
      from jsonb_to_recordset(v_acted -> 'results') u(outcome text)) v
    where o.id = p_op.id
    returning v.all > 0 into again;
  queues := v_acted -> 'queues';
end $f$;
