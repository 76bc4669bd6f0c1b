-- pawl: call
-- Queues of messages. A message is a row of runs of the kind `message`; its input is the body. Its
-- id is at least first_message_id(), so no call for a run finds it and no list shows it. Its name
-- is `~queue`, which no definition can have, so no worker claims it. The columns mean:
--   partition_key     group_key: a queue and a group; no run can have that key: a group is received in order, one message at a time
--   claim_id          the receipt
--   lease_expires_at  the end of its visibility timeout; a message in flight is executing and has
--                     no worker
--   attempt           how often it was received

-- Sends messages, one per position of the arrays (a missing array is all null), in one statement.
-- Answers one row per position, in order. If a message of the same queue has the dedup key, sends
-- nothing and answers that message, as long as it exists.
-- Inserts rows sorted by key, so that concurrent batches cannot deadlock. Messages of several
-- callers (not p_patient) wait at most 100 ms for a key that an open transaction is about to take.
-- Rides runs_idempotency.
create or replace function send(
  p_queue text[], p_body text[], p_delay_ms bigint[], p_group text[], p_dedup_key text[], p_patient boolean
) returns table (id bigint, created boolean) language plpgsql as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
  v_ids bigint[];
  v_created boolean[];
  v_pending int[];           -- null: all
  v_again int[];
  v_inserted int;
  v_taken record;
begin
  perform require_durable_commit();
  if not p_patient then
    perform set_config('lock_timeout', '100ms', true);
  end if;
  v_ids := array(select first_message_id() + (nextval('run_ids') << 6) from generate_series(1, cardinality(p_queue)));
  if p_dedup_key is null then
    insert into runs (id, status, kind, name, queue, priority, retention, input, eligible_at, inserted_at, partition_key)
    select u.id, 'runnable', 'message', '~' || u.queue, u.queue, 0, interval '0', u.body::jsonb,
      v_now + coalesce(u.delay_ms, 0) * interval '1 millisecond', v_now, group_key(u.queue, u."group")
    from unnest(v_ids, p_queue, p_body, p_delay_ms, p_group) u(id, queue, body, delay_ms, "group");
    return query select u.id, true from unnest(v_ids) u(id);
    return;
  end if;

  v_created := array_fill(true, array[cardinality(p_queue)]);
  for v_round in 1 .. 20 loop
    insert into runs (id, status, kind, name, queue, priority, retention, input, eligible_at, inserted_at, partition_key, idempotency_key)
    select u.id, 'runnable', 'message', '~' || u.queue, u.queue, 0, interval '0', u.body::jsonb,
      v_now + coalesce(u.delay_ms, 0) * interval '1 millisecond', v_now, group_key(u.queue, u."group"), u.dedup_key
    from unnest(v_ids, p_queue, p_body, p_delay_ms, p_group, p_dedup_key) with ordinality u(id, queue, body, delay_ms, "group", dedup_key, o)
    where v_pending is null or u.o = any (v_pending)
    order by u.queue, u.dedup_key nulls first, u.id
    on conflict do nothing;
    get diagnostics v_inserted = row_count;
    exit when v_inserted = coalesce(cardinality(v_pending), cardinality(v_ids));

    -- look up the holders of the other keys; if a key has no holder by now, insert again
    v_again := '{}';
    for v_taken in
      select u.o::int, h.id
      from unnest(v_ids, p_queue, p_dedup_key) with ordinality u(id, queue, dedup_key, o)
      left join lateral (select r.id from runs r
        where r.idempotency_key = u.dedup_key and (r.name = '~' || u.queue) is true limit 1) h on true
      where (v_pending is null or u.o = any (v_pending))
        and (select r.id from runs r where r.id = u.id limit 1) is null
    loop
      if v_taken.id is null then
        v_again := v_again || v_taken.o;
      else
        v_ids[v_taken.o] := v_taken.id;
        v_created[v_taken.o] := false;
      end if;
    end loop;
    v_pending := v_again;
    exit when cardinality(v_pending) = 0;
  end loop;
  if cardinality(v_pending) > 0 then
    raise exception 'a dedup key was taken and freed too often, or this transaction cannot see its message: send again in a new transaction'
      using errcode = 'serialization_failure';
  end if;
  return query select u.id, u.created from unnest(v_ids, v_created) u(id, created);
end $f$;
