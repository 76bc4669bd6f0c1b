-- pawl: inner
-- Starts runs with a debounce key, for start_runs. While the run of a key has not begun, another
-- start replaces its input, version, step, queue and priority, and moves its time, at the latest to
-- debounce_until. Everything else stays as the first start gave it. Its deadline moves with it.
-- Answers one row per position. Of several starts of a key in one call, the last one counts.
-- First locks the runs of all keys in id order, then goes from key to key in one order, so that
-- concurrent calls wait for each other without a cycle. A run that has been claimed meanwhile no
-- longer has the key (claim_extra): then a new one is inserted. Its row in extras comes first,
-- because that takes the key. Rides extras_debounce.
create or replace function start_debounced(
  p_positions int[], p_ids bigint[], p_runs new_run[], p_input text[], p_options jsonb[], p_concurrency text[], p_timeout interval[],
  p_known jsonb, p_now timestamptz, p_ceiling interval
) returns table ("position" int, id bigint, created boolean) language plpgsql as $f$
#variable_conflict use_column
declare
  c_rounds constant int := 20;
  v_key record;
  v_first int;
  v_id bigint;
  v_created bigint;
  v_until timestamptz;
  v_timeout interval;
  v_at timestamptz;
  v_concurrency text;
begin
  for i in 1 .. cardinality(p_positions) loop
    p_runs[p_positions[i]].delay_ms := p_options[p_positions[i]] -> 'debounce' ->> 'delayMs';
  end loop;
  perform 1 from (
    select x.run_id from unnest(p_positions) u(o)
    cross join lateral (select t.run_id from extras t where t.debounce_key = p_options[u.o] -> 'debounce' ->> 'key'
      and t.name = p_runs[u.o].name limit 1) x
    order by x.run_id) v
  cross join lateral (select 1 from runs t where t.id = v.run_id limit 1 for no key update) l;
  for v_key in
    select u.key, u.name, array_agg(u.o order by u.o) as positions
    from (select p.o, p_options[p.o] -> 'debounce' ->> 'key' as key, p_runs[p.o].name as name from unnest(p_positions) p(o)) u
    group by u.key, u.name order by u.key collate "C", u.name collate "C"
  loop
    v_first := v_key.positions[1];
    v_id := null;
    v_created := null;
    for v_round in 1 .. c_rounds loop
      select x.run_id into v_id from extras x where x.debounce_key = v_key.key and x.name = v_key.name;
      if found then
        perform 1 from runs r where r.id = v_id for no key update;
        -- in a statement after the lock: whether it still has not begun
        select x.debounce_until, x.timeout into v_until, v_timeout
          from extras x where x.run_id = v_id and x.debounce_key = v_key.key;
        exit when found;
        v_id := null;
        continue;
      end if;
      insert into extras (run_id, name, timeout, deadline_at, debounce_until, debounce_key, correlation_key)
      select p_ids[v_first], v_key.name, p_timeout[v_first], p_now + p_runs[v_first].delay_ms * interval '1 millisecond' + p_timeout[v_first],
        p_now + (o.more -> 'debounce' ->> 'maxDelayMs')::bigint * interval '1 millisecond', v_key.key, o.more ->> 'correlationKey'
      from (select p_options[v_first] as more) o
      on conflict do nothing
      returning run_id, debounce_until, p_timeout[v_first] into v_created, v_until, v_timeout;
      if v_created is not null then
        insert into runs (id, status, hold, name, version, kind, queue, priority, input, step,
          eligible_at, inserted_at, retention, idempotency_key, unique_key, unique_scope, partition_key, rate_limit, weight,
          parent_id, child_of, position, trace, locked_by, claim_id, concurrency, has_extras)
        select n.* from new_rows(p_ids, p_runs, p_input, null, p_concurrency, array_fill(true, array[v_first]), array[v_first], p_known, p_now, p_ceiling,
          null, null) n;
        v_id := v_created;
        exit;
      end if;
    end loop;
    if v_id is null then
      raise exception 'the run of a debounce key began too often meanwhile, or this transaction cannot see it: start again in a new transaction'
        using errcode = 'serialization_failure';
    end if;
    if v_created is not null then
      perform add_extras(array[v_id], p_options[v_first : v_first], array[null::interval]);
    end if;
    if v_created is null or cardinality(v_key.positions) > 1 then
      update runs r set input = n.input, version = n.version, kind = coalesce(n.kind, r.kind), step = n.step,
        queue = coalesce(n.queue, r.queue), priority = coalesce(n.priority, r.priority), hold = r.hold & ~33, throttled = false,
        eligible_at = least(n.eligible_at, v_until)
      from new_rows(p_ids, p_runs, p_input, null, null, null, v_key.positions[cardinality(v_key.positions) : cardinality(v_key.positions)],
        p_known, p_now, p_ceiling, null, null) n
      where r.id = v_id
      returning r.eligible_at, r.concurrency into v_at, v_concurrency;
      if v_concurrency is not null then
        perform note_slots_to_repair(leave_slots(array[v_id]));
      end if;
      if v_timeout is not null then
        update extras x set deadline_at = v_at + v_timeout where x.run_id = v_id;
      end if;
    end if;
    return query
      select p.o, v_id, v_created is not null and p.o = v_first from unnest(v_key.positions) p(o);
  end loop;
end $f$;
