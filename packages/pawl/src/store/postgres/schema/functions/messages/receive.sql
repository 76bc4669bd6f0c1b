-- pawl: call
-- Receives up to p_limit visible messages of a queue, oldest first, of a group only its first and only while none of it is in flight:
-- they are in flight under the receipt p_receipt until their visibility ends, and nobody else receives them. With p_match only those
-- whose body contains it; the others stay. A message that was received p_max_receives times (null: no bound) is moved to the
-- dead-letter queue instead (bury). Nothing is received in a database that is held.
-- Answers them in order, then one row with id null whose meta says what the receiver needs for its next call:
--   floor   µs of the first message received: the next call may begin there instead of at the dead head
--   after   [µs, id] where it stopped walking: 1,000 messages that do not match or whose group is busy, or 50 ms of them, lay in the way
--   more    whether it stopped because p_limit or 16 MiB were reached
--   due_ms  milliseconds until the next delayed message is visible, when nothing was left to receive
-- Like claim it reads pages of runs_claim and tries the advisory locks of their groups, then locks by primary key with SKIP LOCKED and
-- decides in statements of their own (claim_keyed for groups); it never waits. Committed asynchronously: a lost receive is a message that was never in flight, and
-- its random receipt never returns. eligible_at stays, so that a message that comes back is first again.
create or replace function receive(
  p_queue text, p_receipt bigint, p_limit int, p_visibility_ms bigint, p_max_receives int, p_match text,
  p_floor_us bigint, p_after_us bigint, p_after_id bigint
) returns table (id bigint, body text, receives int, key text, sent_at text, origin text, meta text)
language plpgsql as $f$
#variable_conflict use_column
declare
  c_walk constant int := 1000;                            -- messages passed over in one call
  c_patience constant interval := '50 milliseconds';      -- and for how long: bodies may be large
  c_bytes constant int := 16 * 1024 * 1024;               -- what one call may answer
  v_now timestamptz := now();
  v_until timestamptz := clock_timestamp() + c_patience;
  v_lease timestamptz := clock_timestamp() + p_visibility_ms * interval '1 millisecond';
  v_match jsonb := p_match::jsonb;
  v_bound_at timestamptz := coalesce(timestamptz 'epoch' + coalesce(p_after_us, p_floor_us) * interval '1 microsecond', '-infinity');
  v_bound_id bigint := coalesce(p_after_id, -1);
  v_bounded boolean := p_floor_us is not null and p_after_us is null;
  v_page int := case when p_match is null then p_limit else 100 end;
  v_ids bigint[];
  v_sizes int[];
  v_dead bigint[];
  v_keys text[];
  v_keyed record;
  v_rows int;
  v_examined int;
  v_block int;
  v_block_min int := 0;
  v_passed int := 0;
  v_found int := 0;
  v_bytes bigint := 0;
  v_page_bytes bigint;
  v_is_full boolean := false;
  v_is_left boolean;
  v_buried boolean := false;
  v_contended boolean := false;
  v_first_at timestamptz;
  v_floor bigint;
  v_last_at timestamptz;
  v_last_id bigint;
  v_due_ms double precision;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform require_read_committed();
  end if;
  perform set_config('synchronous_commit', 'off', true);  -- in the body: a SET clause is undone before the commit
  -- receivers do not register: also a copy that is to be held and was not told so yet
  if (select s.held or coalesce(s.held_copy = current_database(), false) from settings s where s.only_row) then
    meta := '{"floor": null, "after": null, "due_ms": null, "more": false}';
    return next;
    return;
  end if;
  loop
    select array_agg(p.id) filter (where p.mine), count(*), coalesce(bool_or(not p.mine), false) or v_contended,
      (array_agg(p.eligible_at))[count(*)], (array_agg(p.id))[count(*)]
    into v_ids, v_rows, v_contended, v_last_at, v_last_id
    from (
      -- fits, and its group is at hand? null: does not fit
      select r.id, r.eligible_at, case when v_match is null or r.input @> v_match
        then r.partition_key is null or pg_try_advisory_xact_lock(key_lock(r.partition_key)) end as mine
      from runs r
      where r.queue = p_queue and r.name = '~' || p_queue and r.version = 1 and r.priority = 0
        and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end
        and r.eligible_at <= v_now and r.eligible_at >= v_bound_at and (r.eligible_at, r.id) > (v_bound_at, v_bound_id)
      order by r.eligible_at, r.id limit v_page) p;
    v_is_left := v_rows = v_page;
    v_passed := v_passed + v_rows - coalesce(cardinality(v_ids), 0);
    v_examined := 0;
    v_keys := null;
    v_dead := null;
    v_block := greatest(p_limit - v_found, v_block_min);
    if v_ids is not null then
      -- like claim: lock by primary key, in order, and pass over what another has received meanwhile
      with locked as materialized (
        select l.* from unnest(v_ids) c(id)
        cross join lateral (
          select r.id, r.eligible_at, r.status, r.queue, r.hold, r.partition_key, r.attempt,
            -- as text, which of a small value is at most six times as long
            case when pg_column_compression(r.input) is null and pg_column_size(r.input) < 2000 then 6 * pg_column_size(r.input)
              else octet_length(r.input::text) end as bytes
          from runs r where r.id = c.id and (r.status = 'runnable' and r.hold = 0) is true
          limit 1 for no key update skip locked) l
        where l.status = 'runnable' and l.queue = p_queue and l.hold = 0 and l.eligible_at <= v_now
        limit v_block)
      select array_agg(l.id), array_agg(l.bytes), coalesce(sum(l.bytes), 0), count(*),
        array_agg(l.partition_key) filter (where l.partition_key is not null),
        array_agg(l.id) filter (where l.attempt >= p_max_receives), min(l.eligible_at),
        case when count(*) = v_block then (array_agg(l.eligible_at))[count(*)] else v_last_at end,
        case when count(*) = v_block then (array_agg(l.id))[count(*)] else v_last_id end
      into v_ids, v_sizes, v_page_bytes, v_examined, v_keys, v_dead, v_first_at, v_last_at, v_last_id
      from locked l;
      v_is_left := v_is_left or v_examined = v_block;
      if v_bytes + v_page_bytes > c_bytes and v_found + v_examined > 1 then
        -- as many as fit, and at least one in all
        v_is_full := true;
        select coalesce(max(f.o) filter (where v_bytes + f.upto <= c_bytes), 0) into v_rows
          from (select u.o, sum(u.bytes) over (order by u.o) as upto from unnest(v_sizes) with ordinality u(bytes, o)) f;
        v_ids := nullif(v_ids[1 : greatest(v_rows, case when v_found = 0 then 1 else 0 end)], '{}');
        v_page_bytes := (select sum(u.bytes) from unnest(v_sizes[1 : cardinality(v_ids)]) u(bytes));
      end if;
    end if;

    if v_keys is not null and v_ids is not null then
      v_keys := array(select distinct u.key from unnest(v_keys) u(key));
      select k.allowed, k.contended into v_keyed from claim_keyed(v_ids, v_keys, v_now) k;
      v_ids := nullif(v_keyed.allowed, '{}');
      v_contended := v_contended or v_keyed.contended;
    end if;
    if v_dead is not null and v_ids is not null then
      v_dead := array(select u.id from unnest(v_ids) u(id) where u.id = any (v_dead));
      if cardinality(v_dead) > 0 then
        perform bury(p_queue, v_dead, v_now);
        v_ids := nullif(array(select u.id from unnest(v_ids) with ordinality u(id, o) where u.id <> all (v_dead) order by u.o), '{}');
        v_buried := true;
      end if;
    end if;
    if v_examined > coalesce(cardinality(v_ids), 0) then
      v_passed := v_passed + v_examined - coalesce(cardinality(v_ids), 0);
      v_block_min := 200;    -- a crowd that may not be received: look at more of it at once
    end if;
    if cardinality(v_ids) > p_limit - v_found then
      v_ids := v_ids[1 : p_limit - v_found];
    end if;

    if v_ids is not null then
      return query
        update runs r set status = 'executing', claim_id = p_receipt, attempt = r.attempt + 1, lease_expires_at = v_lease
        from (select u.id from unnest(v_ids) u(id) limit p_limit) c
        where r.id = c.id
        returning r.id, r.input::text, r.attempt, substr(r.partition_key, length(r.name) + 2), iso(r.inserted_at), r.state ->> 'from', null::text;
      v_found := v_found + cardinality(v_ids);
      v_bytes := v_bytes + v_page_bytes;
      v_floor := coalesce(v_floor, to_us(v_first_at));
    end if;

    exit when v_found >= p_limit or v_is_full;
    if v_is_left and v_passed < c_walk and clock_timestamp() < v_until then
      v_bound_at := v_last_at;
      v_bound_id := v_last_id;
      v_page := case when p_match is not null then 100 when v_keys is null and not v_contended then c_walk else greatest(200, p_limit - v_found) end;
    elsif not v_is_left and v_bounded then
      v_bounded := false;
      v_bound_at := '-infinity';
      v_bound_id := -1;
    else
      exit;
    end if;
  end loop;

  if v_found < p_limit and not v_is_left and not v_is_full then
    select ms_until(r.eligible_at, v_now) into v_due_ms from runs r
      where r.queue = p_queue and r.name = '~' || p_queue and r.version = 1 and r.priority = 0
        and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.eligible_at > v_now
      order by r.eligible_at limit 1;
  end if;
  if v_contended or v_buried then
    v_due_ms := least(v_due_ms, 5);    -- the next of a group was let in, or another transaction is deciding about it: look again soon
  end if;
  meta := jsonb_build_object('floor', v_floor, 'due_ms', v_due_ms, 'more', v_found >= p_limit or v_is_full,
    'after', case when v_found < p_limit and v_is_left and not v_is_full then
      jsonb_build_array(to_us(v_last_at), v_last_id::text) end)::text;
  return next;
end $f$;
