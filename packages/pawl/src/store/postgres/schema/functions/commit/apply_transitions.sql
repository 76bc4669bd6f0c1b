-- pawl: inner
-- Applies each transition whose guard (id, claim id, turn, executing) still holds. Also consumes
-- its signals, starts its children, wakes its parent, and lets in the next runs of its partition
-- key and its concurrency limit.
-- There are three updates: the claim is kept (keep), the claim ends and the run goes on (next,
-- retry, await, spawn), or the run ends (done, stop).
-- If anything must be decided, it first locks the runs, and the parents of those that end, in id
-- order, and decides in later statements. A decision in the locking statement would see the newest
-- version of the run but old signals, and would park over a match. Otherwise the one update locks
-- in id order, and checks the guard again after a wait.
-- p_detail is JSON that only some transitions have: consumed, awaits, shown, children,
-- partitionKey, rateLimit, weight, concurrency. Answers
--   others     [{position, verdict: already | stale | busy, inboxSeq, paused}, …], and {verdict:
--              fresh} for kept claims whose inbox has more than the worker knows. With paused, a
--              stale one is committed, but its claim has ended because of a pause. A worker of
--              version 1 does not know paused; `stale` keeps it from executing the next step
--   claimable  the claimable runs it made, by queue
--   handed     [[position, run], …]: runs next in line for freed keys, handed over to p_worker
-- Joins runs by primary key, never by ctid: a row has moved if its lock had to wait. Here and in
-- similar functions the batch comes first in the join, whatever the planner believes of the table.
-- A LIMIT fences the batch, and no other condition on runs can use an index. (Otherwise a batch
-- took 200 ms.)
create or replace function apply_transitions(
  p_id bigint[], p_claim_id bigint[], p_turn bigint[], p_op text[], p_step text[], p_state text[],
  p_result text[], p_error text[], p_delay_ms bigint[], p_priority smallint[],
  p_inbox_seq int[], p_parent_id bigint[], p_key text[], p_detail text[], p_worker text, p_next_claim_id bigint[], p_skip_locked boolean,
  out others jsonb, out claimable jsonb, out handed jsonb
) language plpgsql as $f$
declare
  v_now timestamptz := clock();
  v_keeps boolean := 'keep' = any (p_op);
  v_ends boolean := p_op && '{done,stop}';
  v_goes_on boolean := p_op && '{next,retry,await,spawn}';
  v_locked bigint[];         -- null: all
  v_more jsonb[];            -- the decided details by position; null: no transition has any
  v_has_pauses boolean;
  v_kept int[];
  v_paused int[];            -- wanted to keep their claim, but are paused
  v_ended int[];
  v_passed int[];
  v_applied int[];
  v_waited bigint[];
  v_marked bigint[];         -- those that ended and may have rows in extras
  v_cleared bigint[];
  v_parents bigint[];
  v_child_of int[];
  v_invoked bigint[];
  v_keys text[];
  v_limited int[];           -- change their concurrency limit; null: none
  v_slotted bigint[];        -- give back a slot of their concurrency limit
  v_more_slotted bigint[];
  v_freed record;
begin
  others := '[]';
  claimable := '[]';
  handed := '[]';
  if p_skip_locked then
    v_locked := array(
      select l.id from (select distinct u.id from unnest(p_id || p_parent_id) u(id) where u.id is not null order by u.id) v
      cross join lateral (select r.id from runs r where r.id = v.id limit 1 for no key update skip locked) l);
    -- a run whose parent another transaction has locked is busy too
    v_locked := array(
      select u.id from unnest(p_id, p_parent_id) u(id, parent_id)
      where u.id = any (v_locked) and (u.parent_id is null or u.parent_id = any (v_locked)
        or (select r.id from runs r where r.id = u.parent_id limit 1) is null));
  elsif p_parent_id is not null or p_detail is not null or v_keeps::int + v_ends::int + v_goes_on::int > 1 then
    perform 1 from (select distinct u.id from unnest(p_id || p_parent_id) u(id) where u.id is not null order by u.id) v
      cross join lateral (select 1 from runs r where r.id = v.id limit 1 for no key update) l;
  end if;
  if p_detail is not null then
    v_more := decide_details(p_id, p_claim_id, p_turn, p_op, p_detail, v_locked, v_now);
    select array_agg(u.o) into v_limited from unnest(v_more) with ordinality u(more, o) where u.more ? 'concurrency';
  end if;

  -- The claim is kept: no indexed column changes, so the update is HOT. It names status only
  -- because that costs less: if no column of the generated one is set, PostgreSQL 18 seems to
  -- prepare its expression for every row.
  if v_keeps then
    v_has_pauses := has_pauses();
    with kept as (
      update runs r set status = r.status, turn = r.turn + 1, attempt = 0, crashes = 0, step = v.step,
        state = coalesce(v.state, r.state), awaits = null, shown = null, timed_out = false, rate_limit = null, weight = null
      from (select u.id, u.claim_id, u.turn, u.step, u.state::jsonb as state, u.inbox_seq, u.o::int
            from unnest(p_id, p_claim_id, p_turn, p_op, p_step, p_state, p_inbox_seq) with ordinality
              u(id, claim_id, turn, op, step, state, inbox_seq, o)
            where u.op = 'keep' order by u.id limit cardinality(p_id)) v
      where r.id = v.id and r.claim_id = v.claim_id and r.turn = v.turn
        and (r.status = 'executing' and r.locked_by is not null) is true
        and (v_locked is null or r.id = any (v_locked))
        and ((r.hold & 16) = 0 and not (v_has_pauses and is_paused(r.queue, r.name, r.version))) is true
      returning v.o, r.inbox_seq, v.inbox_seq as known)
    select array_agg(k.o),
      coalesce(jsonb_agg(jsonb_build_object('position', k.o, 'verdict', 'fresh', 'inboxSeq', k.inbox_seq))
        filter (where k.inbox_seq <> coalesce(k.known, 0)), '[]')
    into v_kept, others from kept k;
    if coalesce(cardinality(v_kept), 0) < cardinality(array_positions(p_op, 'keep')) then
      -- a paused run begins no further step: its claim ends, as with next
      v_paused := array(
        select u.o::int from unnest(p_id, p_claim_id, p_turn, p_op) with ordinality u(id, claim_id, turn, op, o)
        cross join lateral (select t.hold, t.queue, t.name, t.version from runs t where t.id = u.id
          and t.claim_id = u.claim_id and t.turn = u.turn and (t.status = 'executing' and t.locked_by is not null) is true limit 1) r
        where u.op = 'keep' and ((r.hold & 16) <> 0 or is_paused(r.queue, r.name, r.version)));
      for i in 1 .. cardinality(v_paused) loop
        p_op[v_paused[i]] := 'next';
        v_goes_on := true;
      end loop;
    end if;
  end if;

  -- the claim ends and the run goes on, or waits
  if v_goes_on then
    with passed as (
      update runs r set
        turn = r.turn + 1,
        locked_by = null,
        status = v.status,
        step = coalesce(v.step, r.step),
        state = coalesce(v.state, r.state),
        error = v.error,
        priority = coalesce(v.priority, r.priority),
        attempt = case when v.op = 'retry' then least(r.attempt, 2147483646) + 1 else 0 end,
        crashes = case when v.op = 'retry' then r.crashes else 0 end,
        eligible_at = v.eligible_at,
        timed_out = v.op = 'retry' and r.timed_out,
        awaits = case when v.op = 'retry' then r.awaits else v.more -> 'awaits' end,
        shown = case when v.op = 'retry' then r.shown else (v.more ->> 'shown')::int[] end,
        rate_limit = case when v.op = 'retry' then r.rate_limit else v.more ->> 'rateLimit' end,
        weight = case when v.op = 'retry' then r.weight else (v.more ->> 'weight')::int end,
        partition_key = case when v.more ? 'partitionKey' then v.more ->> 'partitionKey' else r.partition_key end,
        concurrency = case when v.more ? 'concurrency' then v.more ->> 'concurrency' else r.concurrency end,
        spawn = case when v.op = 'spawn' then r.spawn + 1 else r.spawn end,
        children_pending = coalesce((v.more ->> 'pending')::int, 0)
      from (select u.id, u.claim_id, u.turn, u.op, u.step, u.priority, u.o::int,
              u.state::jsonb as state, u.error::jsonb as error, u.more,
              coalesce((u.more ->> 'status')::run_status, 'runnable') as status,
              case when u.op = 'next' then v_now
                when u.more ? 'at' then greatest((u.more ->> 'at')::timestamptz, within_reach('-infinity'))
                when u.op = 'retry' then v_now + u.delay_ms * interval '1 millisecond'
                else coalesce(v_now + u.delay_ms * interval '1 millisecond', 'infinity') end as eligible_at
            from unnest(p_id, p_claim_id, p_turn, p_op, p_step, p_state, p_error, p_delay_ms, p_priority, v_more)
              with ordinality u(id, claim_id, turn, op, step, state, error, delay_ms, priority, more, o)
            where u.op in ('next', 'retry', 'await', 'spawn') order by u.id limit cardinality(p_id)) v
      where r.id = v.id and r.claim_id = v.claim_id and r.turn = v.turn
        and (r.status = 'executing' and r.locked_by is not null) is true
        and (v_locked is null or r.id = any (v_locked))
      returning v.o, v.op, r.id, r.status, r.queue, r.priority, r.concurrency)
    select array_agg(p.o), coalesce(jsonb_agg(jsonb_build_array(p.queue, p.priority, to_us(v_now)))
        filter (where p.op in ('await', 'spawn') and p.status = 'runnable'), '[]'),
      array_agg(p.id) filter (where p.concurrency is not null or p.o = any (v_limited))
    into v_passed, claimable, v_slotted from passed p;
    if cardinality(v_paused) > 0 then
      others := others || (select coalesce(jsonb_agg(jsonb_build_object('position', u.o, 'verdict', 'stale', 'inboxSeq', 0, 'paused', true)), '[]')
        from unnest(v_paused) u(o) where u.o = any (v_passed));
    end if;
  end if;

  -- the run ends; after those that go on, so that it wakes a parent that began to wait in this call
  if v_ends then
    with ended as (
      update runs r set turn = r.turn + 1, locked_by = null, status = v.status, hold = 0, step = coalesce(v.step, r.step),
        result = v.result, error = v.error, priority = coalesce(v.priority, r.priority), crashes = 0,
        completed_at = v_now, expires_at = v_now + r.retention, children_pending = 0,
        -- a rerun of a failed run begins in the same situation; the journal has that of a workflow
        timed_out = v.is_kept and r.timed_out, awaits = case when v.is_kept and r.kind is distinct from 'workflow' then r.awaits end,
        shown = case when v.is_kept then r.shown end,
        rate_limit = case when v.is_kept then r.rate_limit end, weight = case when v.is_kept then r.weight end
      from (select u.id, u.claim_id, u.turn, u.step, u.priority, u.result::jsonb as result, u.error::jsonb as error, u.o::int,
              case when u.op = 'done' then 'done'::run_status else 'failed'::run_status end as status, u.op = 'stop' as is_kept
            from unnest(p_id, p_claim_id, p_turn, p_op, p_step, p_result, p_error, p_priority) with ordinality
              u(id, claim_id, turn, op, step, result, error, priority, o)
            where u.op in ('done', 'stop') order by u.id limit cardinality(p_id)) v
      where r.id = v.id and r.claim_id = v.claim_id and r.turn = v.turn
        and (r.status = 'executing' and r.locked_by is not null) is true
        and (v_locked is null or r.id = any (v_locked))
      returning v.o, r.id, r.inbox_seq, r.parent_id, r.child_of, r.awaits, r.concurrency, r.has_extras)
    select array_agg(e.o), array_agg(e.id) filter (where e.awaits is not null), array_agg(e.id) filter (where e.has_extras), array_agg(e.id) filter (where e.inbox_seq > 0),
      array_agg(e.parent_id) filter (where e.parent_id is not null),
      array_agg(e.child_of) filter (where e.parent_id is not null),
      array_agg(e.id) filter (where e.parent_id is not null and e.child_of is null),
      array_agg(e.id) filter (where e.concurrency is not null)
    into v_ended, v_waited, v_marked, v_cleared, v_parents, v_child_of, v_invoked, v_more_slotted from ended e;
    v_slotted := v_slotted || v_more_slotted;
    if v_marked is not null then
      perform end_extras(v_marked);
    end if;
    if v_waited is not null then
      perform keep_awaited(v_waited);
    end if;
    if v_cleared is not null then
      perform clear_inboxes(v_cleared, v_now);
    end if;
    if v_parents is not null then
      claimable := claimable || release_parents(v_parents, v_child_of, v_now);
    end if;
    if v_invoked is not null then
      claimable := claimable || deliver_replies(v_invoked, v_now);
    end if;
  end if;

  v_applied := coalesce(v_kept, '{}') || coalesce(v_ended, '{}') || coalesce(v_passed, '{}');
  if p_detail is not null then
    perform consume_signals(array_agg(c.id), array_agg(c.seq), v_now) from (
      select u.id, x::int as seq from unnest(p_id, p_detail) with ordinality u(id, detail, o)
      cross join lateral jsonb_array_elements_text(u.detail::jsonb -> 'consumed') x
      where u.detail is not null and u.o = any (v_applied)) c having count(*) > 0;
  end if;
  -- last, because a run that is handed over may be one of these, and must be in its final state
  if p_key is not null then
    v_keys := array(select case when u.o = any (v_ended) or u.o = any (v_passed) then u.key end
      from unnest(p_key) with ordinality u(key, o));
    select f.claimable, f.handed into v_freed from free_keys(v_keys, v_now, p_worker, p_next_claim_id, p_id) f;
    claimable := claimable || v_freed.claimable;
    handed := v_freed.handed;
  end if;
  if v_slotted is not null then
    claimable := claimable || free_slots(leave_slots(v_slotted), v_now);
  end if;

  if cardinality(v_applied) = cardinality(p_id) then
    return;
  end if;
  others := others || (
    select jsonb_agg(jsonb_build_object('position', u.o, 'inboxSeq', r.inbox_seq, 'paused', a.is_applied and a.is_over, 'sentAgain', true, 'verdict',
      case when u.id <> all (v_locked) and r.id is not null then 'busy'
           when a.is_applied and not a.is_over then 'already'
           else 'stale' end))
    from unnest(p_id, p_claim_id, p_turn, p_op) with ordinality u(id, claim_id, turn, op, o)
    left join lateral (select t.id, t.claim_id, t.turn, t.inbox_seq, t.locked_by from runs t where t.id = u.id limit 1) r on true
    cross join lateral (select coalesce(r.claim_id = u.claim_id and r.turn = u.turn + 1, false) as is_applied,
      u.op = 'keep' and r.locked_by is null as is_over) a
    where u.o <> all (v_applied));
end $f$;
