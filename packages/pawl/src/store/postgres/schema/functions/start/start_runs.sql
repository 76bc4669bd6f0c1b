-- pawl: call
-- Starts runs, one per position, and answers one row per position. Ids follow the order of the
-- input. Inserts rows sorted by key, so that concurrent batches cannot deadlock. A lone run of a
-- known definition goes to start_one first.
-- If a key is taken, starts nothing and answers the holder, also if the new run would begin outside
-- of its unique scope. Two keys with different holders answer `conflict`, or raise if
-- p_all_or_nothing. It waits for a key of an open transaction only if p_all_or_nothing and
-- p_patient, as in a transaction of the caller. Otherwise the call fails with 55P03, and its
-- callers are served one by one. An unknown limit raises. A run with a debounce key replaces the one
-- of its key that has not begun (start_debounced).
-- With p_worker it inserts a `direct` run already claimed, unless the database is held, or one of
-- these runs is of a paused queue or definition. If several
-- due runs share a partition key, only the first may be claimed at once. The others are inserted
-- blocked, as claim_keyed would leave them, and let in one by one. The same goes for more due runs
-- of a concurrency limit than it has slots (first_holds).
-- commit starts children through it (spawn_children). Rides runs_unique and runs_idempotency.
create or replace function start_runs(
  p_runs new_run[], p_input text[], p_all_or_nothing boolean, p_patient boolean, p_worker text, p_claim_id bigint
) returns table ("position" int, id bigint, created boolean, status run_status, conflict bigint)
language plpgsql as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
  v_ceiling interval;
  v_is_held boolean;
  v_given record;            -- how many of the runs have a field
  v_options jsonb[];         -- their rare options; null: none has any
  v_concurrency text[];      -- their concurrency limits; null: none has any
  v_timeout interval[];      -- how long they may take; null: none has rare facts
  v_extra boolean[];         -- which have such facts or tags; null: none
  v_debounced int[] := '{}'; -- which have a debounce key
  v_ids bigint[];
  v_direct boolean[];        -- which are inserted already claimed; null: none
  v_pending int[];           -- null: all
  v_only int[];              -- which of them to insert; null: all
  v_again int[];
  v_answered int[] := '{}';
  v_inserted int;
  v_taken record;
  v_known jsonb;
  v_hold smallint[];         -- which begin blocked, behind other runs of this call; null: none
begin
  perform require_durable_commit();
  if not (p_all_or_nothing and p_patient) then
    -- a key of an open transaction must keep neither the other runs nor a connection waiting
    perform set_config('lock_timeout', '100ms', true);
  end if;
  select count(*) - count(u.kind) as without_kind, count(u.unique_key) + count(u.idempotency_key) as keys, count(u.unique_scope) as scopes,
    count(u.partition_key) as partition_keys, count(u.rate_limit) as rate_limits, count(u.at) as times, count(u.options) as options,
    bool_or(is_misnamed(u)) as misnamed
  into v_given from unnest(p_runs) u;
  if v_given.misnamed then
    perform require_names(p_runs);
  end if;
  if v_given.rate_limits > 0 then
    perform require_limits(array_agg(u.rate_limit), array_agg(u.weight)) from unnest(p_runs) u;
  end if;
  if v_given.options > 0 then
    v_options := read_options(p_runs);
    v_debounced := array(select u.o from unnest(v_options) with ordinality u(more, o) where u.more ? 'debounce');
    v_concurrency := array(select u.more ->> 'concurrency' from unnest(v_options) with ordinality u(more, o) order by u.o);
    perform require_concurrency(v_concurrency);
    -- only a claim gives slots
    perform 1 from unnest(p_runs) with ordinality u where u.direct and v_options[u.ordinality] ? 'concurrency';
    if found then
      p_worker := null;
    end if;
  end if;
  if v_given.times > 0 then
    perform require_time('at', u.at) from unnest(p_runs) u where u.at <> within_reach(u.at);
  end if;
  select s.retention_ceiling, s.held into strict v_ceiling, v_is_held from settings s;
  if v_is_held or p_worker is not null and has_pauses()
      and exists (select 1 from unnest(p_runs) u where u.direct and is_paused(coalesce(u.queue, 'default'), u.name, u.version)) then
    p_worker := null;
  end if;
  if p_worker is not null then
    v_direct := array(select u.direct from unnest(p_runs) with ordinality u order by u.ordinality);
  end if;
  v_ids := array(select nextval('run_ids') << 6 from generate_series(1, cardinality(p_runs)));
  -- starts by name: the definition to run, found once per name, or per name and version where one
  -- is given
  if v_given.without_kind > 0 then
    select jsonb_object_agg(n.name || coalesce('@' || n.version, ''), to_jsonb(d)) into v_known
    from (select distinct u.name, u.version from unnest(p_runs) u where u.kind is null) n
    cross join lateral resolve(n.name, n.version) d;
  end if;

  if v_options is not null or v_known @? '$.* ? (@.timeout != null)' then
    v_timeout := timeouts_of(p_runs, v_options, v_known);
    v_extra := marks_of(v_options, v_timeout);
  end if;

  if v_debounced <> '{}' then
    return query
      select d.position, d.id, d.created, 'runnable'::run_status, null::bigint
      from start_debounced(v_debounced, v_ids, p_runs, p_input, v_options, v_concurrency, v_timeout, v_known, v_now, v_ceiling) d;
    v_pending := array(select n from generate_series(1, cardinality(p_runs)) n where n <> all (v_debounced));
    if v_pending = '{}' then
      return;
    end if;
    v_answered := v_debounced;
  end if;

  -- without keys there is no conflict, and a plain insert is cheaper
  if v_given.keys = 0 then
    if v_given.partition_keys > 0 or v_given.options > 0 then
      v_hold := first_holds(p_runs, v_options, p_worker, v_now);
    end if;
    insert into runs (id, status, hold, name, version, kind, queue, priority, input, step,
      eligible_at, inserted_at, retention, idempotency_key, unique_key, unique_scope, partition_key, rate_limit, weight,
      parent_id, child_of, position, trace, locked_by, claim_id, concurrency, has_extras)
    select n.* from new_rows(v_ids, p_runs, p_input, v_hold, v_concurrency, v_extra, v_pending, v_known, v_now, v_ceiling, p_worker, p_claim_id) n;
    if 32 = any (v_hold) then
      perform put_slots(array(select u.id from unnest(v_ids, v_hold) u(id, hold) where u.hold = 32), null);
    end if;
    if true = any (v_extra) then
      perform add_extras(array(select case when u.o <> all (v_debounced) then u.id end from unnest(v_ids) with ordinality u(id, o) order by u.o),
        v_options, v_timeout);
    end if;
    return query
      select u.o::int, u.id, true, first_status(v_direct[u.o], p_worker), null::bigint from unnest(v_ids) with ordinality u(id, o)
      where v_pending is null or u.o = any (v_pending);
    return;
  end if;

  for v_round in 1 .. 20 loop
    v_only := v_pending;
    if v_given.scopes > 0 then
      -- a new run outside of its own scope collides with nothing: look up whether its key is taken
      v_only := array(
        select u.ordinality from unnest(p_runs) with ordinality u
        where (v_pending is null or u.ordinality = any (v_pending)) and not (u.unique_key is not null
          and first_status(u.direct, p_worker) <> all (u.unique_scope::run_status[])
          and (select r.id from runs r where r.unique_guard = u.unique_key limit 1) is not null) is true);
    end if;
    insert into runs (id, status, hold, name, version, kind, queue, priority, input, step,
      eligible_at, inserted_at, retention, idempotency_key, unique_key, unique_scope, partition_key, rate_limit, weight,
      parent_id, child_of, position, trace, locked_by, claim_id, concurrency, has_extras)
    select n.* from new_rows(v_ids, p_runs, p_input, v_hold, v_concurrency, v_extra, v_only, v_known, v_now, v_ceiling, p_worker, p_claim_id) n
    order by n.unique_key nulls first, n.name, n.idempotency_key nulls first, n.id
    on conflict do nothing;
    get diagnostics v_inserted = row_count;
    exit when v_pending is null and v_inserted = cardinality(v_ids);

    -- look up the holders of the other keys; if a key has no holder by now, insert again
    v_again := '{}';
    for v_taken in
      select u.ordinality::int as o, by_unique.id as unique_id, by_idempotency.id as idempotency_id,
        coalesce(by_unique.status, by_idempotency.status) as status
      from unnest(p_runs) with ordinality u
      left join lateral (select r.id, r.status from runs r
        where r.unique_guard = u.unique_key limit 1) by_unique on true
      left join lateral (select r.id, r.status from runs r
        where r.idempotency_key = u.idempotency_key and (r.name = u.name) is true limit 1) by_idempotency on true
      where (v_pending is null or u.ordinality = any (v_pending))
        and not exists (select 1 from runs r where r.id = v_ids[u.ordinality])
    loop
      if v_taken.unique_id is null and v_taken.idempotency_id is null then
        v_again := v_again || v_taken.o;
        continue;
      end if;
      "position" := v_taken.o;
      id := coalesce(v_taken.unique_id, v_taken.idempotency_id);
      created := false;
      status := v_taken.status;
      conflict := case when v_taken.unique_id <> v_taken.idempotency_id then v_taken.idempotency_id end;
      if conflict is not null and p_all_or_nothing then
        raise exception 'item %: the unique key is held by run %, the idempotency key by run %: give keys of one run', v_taken.o - 1, id,
          conflict using errcode = 'PW409';
      end if;
      return next;
      v_answered := v_answered || v_taken.o;
    end loop;
    v_pending := v_again;
    exit when cardinality(v_pending) = 0;
  end loop;

  if cardinality(v_pending) > 0 then
    raise exception 'a key was taken and freed too often, or this transaction cannot see its holder: start again in a new transaction'
      using errcode = 'serialization_failure';
  end if;
  if true = any (v_extra) then
    perform add_extras(array(select case when u.o <> all (v_answered) then u.id end from unnest(v_ids) with ordinality u(id, o) order by u.o),
      v_options, v_timeout);
  end if;
  return query
    select u.o::int, u.id, true, first_status(v_direct[u.o], p_worker), null::bigint from unnest(v_ids) with ordinality u(id, o)
    where u.o <> all (v_answered);
end $f$;
