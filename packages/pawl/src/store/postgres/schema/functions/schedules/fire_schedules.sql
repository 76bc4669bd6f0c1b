-- pawl: call; lock_timeout 100ms
-- Fires schedules that are due, as [{"name", "expected", "ticks", "next"}, …]: for each, starts the
-- runs of these ticks and moves next_at, all in one transaction. `expected` guards it: of many
-- callers with the same item one fires it, and the others find the row locked or next_at moved on.
-- Answers a row per item: a verdict (fired, skipped, failed, busy, gone or error), the runs as
-- [[at, id, created], …], and what follows from the cancellation of the run before.
-- A lone tick obeys overlap: `skip` starts nothing while the last run is not terminal, `cancel`
-- cancels that run and its children. Several ticks are those that were missed (catch_up `all`):
-- each starts its run.
-- Each item has its own subtransaction. A schedule whose run the database refuses records the error
-- and waits for its next tick (failed). A locked run or key leaves it due (busy), and so does an
-- error that is not the fault of this item (error). The first locked row costs 100 ms, each further
-- one 5 ms, so that many of them do not delay the other items. Locks the schedule without waiting, then the
-- last run, then keys. Rides schedules_pkey.
create or replace function fire_schedules(p_items text)
returns table ("position" int, verdict text, runs text, queue text, definition text, version int, cancelled text, names text,
  lost text, claimable text, code text, message text)
language plpgsql as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
  v_item record;
begin
  perform require_read_committed();
  perform require_durable_commit();
  for v_item in
    select u.o::int as o, u.i ->> 'name' as name, (u.i ->> 'expected')::timestamptz as expected, (u.i ->> 'next')::timestamptz as next,
      array(select t.at::timestamptz from jsonb_array_elements_text(u.i -> 'ticks') t(at)) as ticks
    from jsonb_array_elements(p_items::jsonb) with ordinality u(i, o)
  loop
    begin
      return query
        select v_item.o, f.verdict, f.runs, f.queue, f.definition, f.version, f.cancelled, f.names, f.lost, f.claimable, null::text, null::text
        from fire_schedule(v_item.name, v_item.expected, v_item.ticks, v_item.next, v_now) f;
    exception when others then
      if sqlstate ~ '^(08|40|53|57|58)' then
        raise;
      end if;
      "position" := v_item.o;
      code := sqlstate;
      message := left(sqlerrm, 1000);
      if sqlstate = '55P03' then
        perform set_config('lock_timeout', '5ms', true);
      end if;
      verdict := case when sqlstate = '55P03' then 'busy' when is_row_fault(sqlstate) then 'failed' else 'error' end;
      if verdict = 'failed' then
        update schedules s set next_at = v_item.next, due_at = v_item.next + s.offset_ms * interval '1 millisecond',
            failures = least(s.failures, 1000000) + 1, error = jsonb_build_object('code', code, 'message', message)
          where s.name = (select t.name from schedules t where t.name = v_item.name and t.next_at = v_item.expected
            and t.due_at is not null for no key update skip locked);
      end if;
      return next;
      code := null;
      message := null;
    end;
  end loop;
end $f$;
