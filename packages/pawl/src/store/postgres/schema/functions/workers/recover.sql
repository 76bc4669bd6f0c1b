-- pawl: call; lock_timeout 100ms
-- The maintenance that every worker calls again and again, in one call. It ends the claims of dead
-- workers (reap), fails runs past their deadline (fail_overdue) and makes messages visible again
-- (expire). With p_repairs it also ends the claims
-- of workers without a row, and places runs whose definition is registered by now (place_runs). It
-- moves runs that a changed limit lets through sooner (bring_forward), and lets in blocked runs of
-- partition keys (repair_keys) and of concurrency limits (repair_slots), and counts runs for charts
-- (roll_up).
-- The first of these that has written anything ends the call, and `again` asks for another call at
-- once. So no transaction keeps the rows of one locked while the next one looks. If one fails
-- because of a row, it is reported as a warning and the next one runs.
-- p_marks is the `marks` of the last answer. Its member `failed` has the runs of fail_overdue, `bulk`
-- says that there are open bulk operations (work_bulk). After repairs that looked at keys, and keep
-- them locked until their call ends, `counts` leaves the counting to the next call.
-- `queues` got work, as JSON. due_ms: no lease and no deadline passes before that, unless a worker
-- registers or a run starts meanwhile. is_waited: there are keys with blocked runs, so
-- call again soon.
create or replace function recover(p_limit int, p_repairs boolean, p_marks text)
returns table (reaped int, queues text, marks text, again boolean, is_waited boolean, due_ms double precision)
language plpgsql as $f$
declare
  c_keys constant int := 200;    -- few, because each takes an advisory lock
  v_marks jsonb := coalesce(p_marks::jsonb, '{}') - '{failed,bulk,counts}'::text[];
  v_counts boolean := coalesce(p_marks::jsonb ? 'counts', false);
  v_overdue record;
  v_deadline_ms double precision;
  v_placed record;
  v_forward record;
  v_keys record;
  v_slots record;
  v_messages record;
begin
  perform require_read_committed();
  if timeline() <> (select s.timeline from settings s where s.only_row) then
    perform begin_timeline();
  end if;
  queues := '[]';
  is_waited := false;
  select r.reaped into reaped from reap(p_limit, p_repairs) r;
  again := reaped > 0;
  if not again then
    begin
      select o.failed, o.claimable, o.due_ms into v_overdue from fail_overdue(p_limit) o;
      v_deadline_ms := v_overdue.due_ms;
      if v_overdue.failed is not null then
        again := true;
        v_marks := v_marks || jsonb_build_object('failed', v_overdue.failed::jsonb);
        queues := to_jsonb(array(select distinct e.value ->> 0 from jsonb_array_elements(v_overdue.claimable::jsonb) e))::text;
      end if;
    exception when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
      raise warning 'pawl: runs past their deadline cannot be failed: %', sqlerrm;
    end;
  end if;
  if not again then
    begin
      select e.expired, e.marks into v_messages from expire(p_limit, v_marks ->> 'messages') e;
      again := v_messages.expired > 0;
      v_marks := v_marks || jsonb_build_object('messages', v_messages.marks);
    exception when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
      raise warning 'pawl: messages cannot be made visible again: %', sqlerrm;
    end;
  end if;
  if p_repairs and not again and not v_counts then
    begin
      select p.queues, p.last into v_placed from place_runs(p_limit, v_marks ->> 'placed') p;
      queues := v_placed.queues;
      again := queues <> '[]';
      v_marks := v_marks || jsonb_build_object('placed', v_placed.last);
    exception when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
      raise warning 'pawl: runs cannot be placed: %', sqlerrm;
    end;
    if not again then
      begin
        select f.looked, f.moved, f.queues into v_forward from bring_forward(p_limit) f;
        queues := v_forward.queues;
        again := v_forward.moved > 0 or v_forward.looked = p_limit;
      exception when others then
        if not is_row_fault(sqlstate) then
          raise;
        end if;
        raise warning 'pawl: throttled runs cannot be brought forward: %', sqlerrm;
      end;
    end if;
    if not again then
      select k.looked, k.last, k.queues, k.is_left into v_keys from repair_keys(v_marks ->> 'key', c_keys) k;
      queues := v_keys.queues;
      is_waited := v_keys.looked > 0;
      again := v_keys.is_left and queues <> '[]';
      v_marks := v_marks || jsonb_build_object('key', v_keys.last);
      if queues = '[]' then
        select s.looked, s.last, s.queues, s.is_left into v_slots from repair_slots(v_marks ->> 'slot', c_keys) s;
        queues := v_slots.queues;
        is_waited := is_waited or v_slots.looked > 0;
        again := v_slots.is_left and queues <> '[]';
        v_marks := v_marks || jsonb_build_object('slot', v_slots.last);
      end if;
    end if;
  end if;
  if p_repairs and not again and (is_waited or queues <> '[]') then
    again := is_roll_up_due();
    v_marks := v_marks || case when again then '{"counts": true}' else '{}' end::jsonb;
  elsif p_repairs and not again then
    begin
      again := roll_up(p_limit * 10) or v_counts;    -- then the repairs have their turn
    exception when others then
      if not is_row_fault(sqlstate) then
        raise;
      end if;
      raise warning 'pawl: runs cannot be counted for charts: %', sqlerrm;
    end;
  end if;
  if exists (select 1 from bulk_operations o where o.completed_at is null) then
    v_marks := v_marks || '{"bulk": true}';
  end if;
  marks := v_marks::text;
  select extract(epoch from min(greatest(w.seen_at, s.beats_since) + w.lease) - clock_timestamp()) * 1000 into due_ms
    from settings s, workers w;
  due_ms := least(due_ms, case when v_deadline_ms is not null then greatest(v_deadline_ms, 0) end);
  return next;
end $f$;
