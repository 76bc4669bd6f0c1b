-- pawl: call
-- Receives up to p_limit visible messages of a queue, oldest first. From a group it takes only the
-- first message, and only while none of the group is in flight. The messages are in flight under
-- the receipt p_receipt until their visibility ends, and no other call receives them.
-- With p_match it takes only messages whose body contains it; the others stay. A message that was
-- received p_max_receives times (null: no bound) goes to the dead-letter queue instead
-- (move_to_dead_letters). In a held database, or from a paused queue, nothing is received.
-- Answers the messages in order, then one row with id null. The meta of that row tells the
-- receiver:
--   floor   µs of the first message received: the next call may begin there instead of at the dead
--           head
--   after   [µs, id] where it stopped: it passed over 1,000 messages, or 50 ms of them, that do not
--           match or whose group is busy
--   more    whether it stopped because of p_limit or 16 MiB
--   due_ms  milliseconds until the next delayed message is visible, when nothing was left to
--           receive
-- Like claim it reads pages of runs_claim, tries the advisory locks of their groups, locks by
-- primary key (lock_page), and decides in later statements (claim_keyed for groups). It never
-- waits for a lock.
-- Commits asynchronously: a lost receive is a message that was never in flight, and its random
-- receipt never returns. eligible_at stays, so that a message that comes back is first again.
create or replace function receive(
  p_queue text, p_receipt bigint, p_limit int, p_visibility_ms bigint, p_max_receives int, p_match text,
  p_floor_us bigint, p_after_us bigint, p_after_id bigint
) returns table (id bigint, body text, receives int, key text, sent_at text, origin text, meta text)
language plpgsql as $f$
#variable_conflict use_column
declare
  c_walk constant int := 1000;                            -- messages that one call passes over
  c_patience constant interval := '50 milliseconds';      -- and how long: bodies may be large
  c_bytes constant int := 16 * 1024 * 1024;               -- the most that one call answers
  v_now timestamptz := clock();
  v_until timestamptz := clock_timestamp() + c_patience;
  v_lease timestamptz := clock_timestamp() + p_visibility_ms * interval '1 millisecond';
  v_match jsonb := p_match::jsonb;
  v_bound_at timestamptz := coalesce(timestamptz 'epoch' + coalesce(p_after_us, p_floor_us) * interval '1 microsecond', '-infinity');
  v_bound_id bigint := coalesce(p_after_id, -1);
  v_bounded boolean := p_floor_us is not null and p_after_us is null;
  v_page int := case when p_match is null then p_limit else 100 end;
  v_ids bigint[];
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
  v_has_dead_letters boolean := false;
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
  -- in the body: a SET clause is undone before the commit
  perform set_config('synchronous_commit', 'off', true);
  -- receivers do not register: so this also checks for a copy that register has not marked as held
  if (select s.held or coalesce(s.held_copy = current_database(), false) from settings s where s.only_row)
      or is_paused(p_queue, null, null) then
    meta := '{"floor": null, "after": null, "due_ms": null, "more": false}';
    return next;
    return;
  end if;
  loop
    select array_agg(p.id) filter (where p.mine), count(*), coalesce(bool_or(not p.mine), false) or v_contended,
      (array_agg(p.eligible_at))[count(*)], (array_agg(p.id))[count(*)]
    into v_ids, v_rows, v_contended, v_last_at, v_last_id
    from (
      -- mine: the advisory lock of its group; null: the body does not match
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
      select p.ids, p.bytes, p.examined, p.is_full, p.keys, p.worn, p.first_at
      into v_ids, v_page_bytes, v_examined, v_is_full, v_keys, v_dead, v_first_at
      from lock_page(v_ids, p_queue, v_block, c_bytes - v_bytes, v_found, p_max_receives, v_now) p;
    end if;

    if (v_keys is not null or v_dead is not null) and v_examined = v_block then
      -- some may not be received while the page has more: go on behind the last one examined
      v_is_left := true;
      select r.eligible_at, r.id into v_last_at, v_last_id from runs r where r.id = v_ids[cardinality(v_ids)];
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
        perform move_to_dead_letters(p_queue, v_dead, v_now);
        v_ids := nullif(array(select u.id from unnest(v_ids) with ordinality u(id, o) where u.id <> all (v_dead) order by u.o), '{}');
        v_has_dead_letters := true;
      end if;
    end if;
    if v_examined > coalesce(cardinality(v_ids), 0) then
      v_passed := v_passed + v_examined - coalesce(cardinality(v_ids), 0);
      v_block_min := 200;    -- many messages that may not be received: examine more at once
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
  if v_contended or v_has_dead_letters then
    -- the next of a group was let in, or another transaction decides about it: look again soon
    v_due_ms := least(v_due_ms, 5);
  end if;
  meta := jsonb_build_object('floor', v_floor, 'due_ms', v_due_ms, 'more', v_found >= p_limit or v_is_full,
    'after', case when v_found < p_limit and v_is_left and not v_is_full then
      jsonb_build_array(to_us(v_last_at), v_last_id::text) end)::text;
  return next;
end $f$;
