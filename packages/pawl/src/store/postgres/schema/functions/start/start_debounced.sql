-- pawl: inner
-- Starts runs with a debounce key, for start_runs. While the run of a key has not begun, another
-- start replaces its input, version, step, queue and priority, and moves its time, at the latest to
-- debounce_until. Everything else stays as the first start gave it. Its deadline moves with it.
-- Answers one row per position. Of several starts of a key in one call, the last one counts.
-- First locks the runs of all keys in id order, then goes from key to key in one order, so that
-- concurrent calls wait for each other without a cycle. A run that has been claimed meanwhile no
-- longer has the key (take_claims): then a new one is inserted. Rides runs_debounce.
create or replace function start_debounced(
  p_positions int[], p_ids bigint[], p_runs new_run[], p_input text[], p_options jsonb[], p_known jsonb, p_now timestamptz, p_ceiling interval
) returns table ("position" int, id bigint, created boolean) language plpgsql as $f$
#variable_conflict use_column
declare
  c_rounds constant int := 20;
  v_key record;
  v_id bigint;
  v_created bigint;
begin
  perform 1 from (
    select r.id from unnest(p_positions) u(o)
    cross join lateral (select t.id from runs t where t.debounce_key = p_options[u.o] -> 'debounce' ->> 'key'
      and t.name = p_runs[u.o].name and t.status = 'runnable' limit 1) r
    order by r.id) v
  cross join lateral (select 1 from runs t where t.id = v.id limit 1 for no key update) l;
  for v_key in
    select u.key, u.name, array_agg(u.o order by u.o) as positions
    from (select p.o, p_options[p.o] -> 'debounce' ->> 'key' as key, p_runs[p.o].name as name from unnest(p_positions) p(o)) u
    group by u.key, u.name order by u.key collate "C", u.name collate "C"
  loop
    v_created := null;
    for v_round in 1 .. c_rounds loop
      -- after a wait for the lock, PostgreSQL checks the conditions again
      select r.id into v_id from runs r
        where r.debounce_key = v_key.key and r.name = v_key.name and r.status = 'runnable' for no key update;
      exit when found;
      insert into runs (id, status, hold, name, version, kind, queue, priority, input, step,
        eligible_at, inserted_at, retention, idempotency_key, unique_key, unique_scope, partition_key, rate_limit, weight,
        parent_id, child_of, position, trace, locked_by, claim_id,
        deadline_at, debounce_until, debounce_key, correlation_key, concurrency, tagged, slot)
      select n.* from new_rows(p_ids, p_runs, p_input, p_options, null, v_key.positions[1 : 1], p_known, p_now, p_ceiling, null, null) n
      on conflict do nothing
      returning runs.id into v_created;
      v_id := v_created;
      exit when v_created is not null;
    end loop;
    if v_id is null then
      raise exception 'the run of a debounce key began too often meanwhile, or this transaction cannot see it: start again in a new transaction'
        using errcode = 'serialization_failure';
    end if;
    if v_created is not null then
      perform add_tags(array[v_id], p_options[v_key.positions[1] : v_key.positions[1]]);
    end if;
    if v_created is null or cardinality(v_key.positions) > 1 then
      update runs r set input = n.input, version = n.version, kind = coalesce(n.kind, r.kind), step = n.step,
        queue = coalesce(n.queue, r.queue), priority = coalesce(n.priority, r.priority), hold = r.hold & ~33, slot = null, throttled = false,
        eligible_at = least(n.eligible_at, r.debounce_until),
        deadline_at = least(n.eligible_at, r.debounce_until) + (r.deadline_at - r.eligible_at)
      from new_rows(p_ids, p_runs, p_input, p_options, null, v_key.positions[cardinality(v_key.positions) : cardinality(v_key.positions)],
        p_known, p_now, p_ceiling, null, null) n
      where r.id = v_id;
    end if;
    return query
      select p.o, v_id, v_created is not null and p.o = v_key.positions[1] from unnest(v_key.positions) p(o);
  end loop;
end $f$;
