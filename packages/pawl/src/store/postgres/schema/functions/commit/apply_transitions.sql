-- pawl: inner
-- Locks the runs (and the parents of those that end) in id order, then applies each transition whose guard (id, claim id,
-- turn, executing) still holds, with all that belongs to it: signals consumed, children started, parents and the next runs
-- of partition keys let in. Decides in statements after the one that locks: a decision in the locking statement would see
-- the run's newest version but old signals, and park over a match.
-- p_detail is JSON with what only some transitions have: consumed, awaits, shown, children, partitionKey, rateLimit, weight.
-- Answers `others`, a JSON array of {position, verdict: already | stale | busy, inboxSeq} and {position, verdict: fresh, inboxSeq} of
-- kept claims whose inbox has more than the worker knows; the claimable runs it made, by queue; and the runs that were handed
-- over to p_worker, next in line for the keys that it freed: [[position, run], …].
-- Runs are joined by primary key, never by ctid: a row whose lock had to wait has moved. In every function of this
-- kind the batch comes first in the join, whatever the planner believes of the table: the batch is fenced by a LIMIT,
-- and no other condition on runs can use an index (else: 500 × the table, 200 ms a batch).
create or replace function apply_transitions(
  p_id bigint[], p_claim_id bigint[], p_turn bigint[], p_op text[], p_step text[], p_state text[],
  p_result text[], p_error text[], p_delay_ms bigint[], p_priority smallint[],
  p_inbox_seq int[], p_parent_id bigint[], p_key text[], p_detail text[], p_worker text, p_next_claim_id bigint[], p_skip_locked boolean,
  out others jsonb, out claimable jsonb, out handed jsonb
) language plpgsql as $f$
declare
  v_now timestamptz := now();
  v_locked bigint[];         -- null: all
  v_more jsonb[];            -- what only some transitions have; null: none has
  v_kept int[];
  v_applied int[];
  v_cleared bigint[];
  v_parents bigint[];
  v_child_of int[];
  v_invoked bigint[];
  v_queues text[];
  v_keys text[];
  v_claims bigint[];
  v_positions int[];
  v_runs bigint[];
  v_freed record;
begin
  others := '[]';
  claimable := '[]';
  handed := '[]';
  if p_skip_locked then
    v_locked := array(
      select l.id from (select distinct u.id from unnest(p_id || p_parent_id) u(id) where u.id is not null order by u.id) v
      cross join lateral (select r.id from runs r where r.id = v.id limit 1 for no key update skip locked) l);
    -- a run whose parent somebody else has locked waits too
    v_locked := array(
      select u.id from unnest(p_id, p_parent_id) u(id, parent_id)
      where u.id = any (v_locked) and (u.parent_id is null or u.parent_id = any (v_locked)
        or (select r.id from runs r where r.id = u.parent_id limit 1) is null));
  elsif p_parent_id is null and p_detail is null and p_key is null and 'done' = all (p_op) then
    -- ends of runs that nobody waits for: the update locks in id order, and checks the guard again where it had to wait
    with ended as (
      update runs r set turn = r.turn + 1, locked_by = null, status = 'done', step = coalesce(v.step, r.step), result = v.result,
        error = null, crashes = 0, completed_at = v_now, expires_at = v_now + r.retention, timed_out = false, awaits = null,
        shown = null, rate_limit = null, weight = null, children_pending = 0
      from (select u.id, u.claim_id, u.turn, u.step, u.result::jsonb as result, u.o::int
            from unnest(p_id, p_claim_id, p_turn, p_step, p_result) with ordinality u(id, claim_id, turn, step, result, o)
            order by u.id limit cardinality(p_id)) v
      where r.id = v.id and r.claim_id = v.claim_id and r.turn = v.turn and (r.status = 'executing' and r.locked_by is not null) is true
      returning v.o, r.id, r.inbox_seq)
    select coalesce(array_agg(e.o), '{}'), array_agg(e.id) filter (where e.inbox_seq > 0) into v_applied, v_cleared from ended e;
    if v_cleared is not null then
      perform clear_inboxes(v_cleared, v_now);
    end if;
  elsif cardinality(p_id) = 1 and p_parent_id is null and p_detail is null then
    null;    -- one run, and nothing to decide about it: its update locks it, and checks the guard again if it had to wait
  elsif p_parent_id is null then
    perform 1 from (select u.id from unnest(p_id) u(id) order by u.id) v
      cross join lateral (select 1 from runs r where r.id = v.id limit 1 for no key update) l;
  else
    perform 1 from (select distinct u.id from unnest(p_id || p_parent_id) u(id) where u.id is not null order by u.id) v
      cross join lateral (select 1 from runs r where r.id = v.id limit 1 for no key update) l;
  end if;

  if p_detail is not null then
    v_more := decide_details(p_id, p_claim_id, p_turn, p_op, p_detail, v_locked, v_now);
  end if;

  -- the claim is kept: no indexed column changes, so the update is HOT. (status is named only because it costs
  -- less: without any column of the generated one, PostgreSQL 18 seems to prepare its expression for every row.)
  if 'keep' = any (p_op) then
    with kept as (
      update runs r set status = r.status, turn = r.turn + 1, attempt = 0, crashes = 0, step = v.step,
        state = coalesce(v.state, r.state), awaits = null, shown = null, timed_out = false, rate_limit = null, weight = null
      from (select u.id, u.claim_id, u.turn, u.step, u.state::jsonb as state, u.inbox_seq, u.o::int
            from unnest(p_id, p_claim_id, p_turn, p_op, p_step, p_state, p_inbox_seq) with ordinality
              u(id, claim_id, turn, op, step, state, inbox_seq, o)
            where u.op = 'keep' limit cardinality(p_id)) v
      where r.id = v.id and r.claim_id = v.claim_id and r.turn = v.turn
        and (r.status = 'executing' and r.locked_by is not null) is true
        and (v_locked is null or r.id = any (v_locked))
      returning v.o, r.inbox_seq, v.inbox_seq as known)
    select array_agg(k.o),
      coalesce(jsonb_agg(jsonb_build_object('position', k.o, 'verdict', 'fresh', 'inboxSeq', k.inbox_seq))
        filter (where k.inbox_seq <> coalesce(k.known, 0)), '[]')
    into v_kept, others from kept k;
  end if;

  -- the claim ends
  if v_applied is null and coalesce(cardinality(v_kept), 0) < cardinality(p_id) then
    with ended as (
      update runs r set
        turn = r.turn + 1,
        locked_by = null,
        status = v.status,
        step = coalesce(v.step, r.step),
        state = coalesce(v.state, r.state),
        result = v.result,
        error = v.error,
        priority = coalesce(v.priority, r.priority),
        attempt = case when v.op in ('done', 'stop') then r.attempt when v.op = 'retry' then least(r.attempt, 2147483646) + 1 else 0 end,
        crashes = case when v.op = 'retry' then r.crashes else 0 end,
        eligible_at = coalesce(v.eligible_at, r.eligible_at),
        completed_at = v.completed_at,
        expires_at = v.completed_at + r.retention,
        timed_out = v.op = 'retry' and r.timed_out,
        awaits = case when v.op = 'retry' then r.awaits else v.more -> 'awaits' end,
        shown = case when v.op = 'retry' then r.shown else (v.more ->> 'shown')::int[] end,
        rate_limit = case when v.op = 'retry' then r.rate_limit else v.more ->> 'rateLimit' end,
        weight = case when v.op = 'retry' then r.weight else (v.more ->> 'weight')::int end,
        partition_key = case when v.more ? 'partitionKey' then v.more ->> 'partitionKey' else r.partition_key end,
        spawn = case when v.op = 'spawn' then r.spawn + 1 else r.spawn end,
        children_pending = coalesce((v.more ->> 'pending')::int, 0)
      from (select u.id, u.claim_id, u.turn, u.op, u.step, u.priority, u.o::int,
              u.state::jsonb as state, u.result::jsonb as result, u.error::jsonb as error, u.more,
              case when u.op = 'done' then 'done'::run_status when u.op = 'stop' then 'failed'::run_status
                when u.more ? 'status' then (u.more ->> 'status')::run_status else 'runnable'::run_status end as status,
              case when u.op in ('done', 'stop') then v_now end as completed_at,
              case when u.op = 'next' then v_now
                when u.more ? 'at' then greatest((u.more ->> 'at')::timestamptz, within_reach('-infinity'))
                when u.op = 'retry' then v_now + u.delay_ms * interval '1 millisecond'
                when u.op = 'await' then coalesce(v_now + u.delay_ms * interval '1 millisecond', 'infinity') end as eligible_at
            from unnest(p_id, p_claim_id, p_turn, p_op, p_step, p_state, p_result, p_error, p_delay_ms, p_priority, v_more)
              with ordinality u(id, claim_id, turn, op, step, state, result, error, delay_ms, priority, more, o)
            where u.op <> 'keep' limit cardinality(p_id)) v
      where r.id = v.id and r.claim_id = v.claim_id and r.turn = v.turn
        and (r.status = 'executing' and r.locked_by is not null) is true
        and (v_locked is null or r.id = any (v_locked))
      returning v.o, v.op, r.id, r.status, r.queue, r.priority, r.inbox_seq, r.parent_id, r.child_of)
    select array_agg(e.o), array_agg(e.queue),
      array_agg(e.id) filter (where e.status in ('done', 'failed') and e.inbox_seq > 0),
      array_agg(e.parent_id) filter (where e.status in ('done', 'failed') and e.parent_id is not null),
      array_agg(e.child_of) filter (where e.status in ('done', 'failed') and e.parent_id is not null),
      array_agg(e.id) filter (where e.status in ('done', 'failed') and e.parent_id is not null and e.child_of is null),
      coalesce(jsonb_agg(jsonb_build_array(e.queue, e.priority, to_us(v_now)))
        filter (where e.op in ('await', 'spawn') and e.status = 'runnable'), '[]')
    into v_applied, v_queues, v_cleared, v_parents, v_child_of, v_invoked, claimable from ended e;
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

  if p_detail is not null then
    perform consume_signals(array_agg(c.id), array_agg(c.seq), v_now) from (
      select u.id, x::int as seq from unnest(p_id, p_detail) with ordinality u(id, detail, o)
      cross join lateral jsonb_array_elements_text(u.detail::jsonb -> 'consumed') x
      where u.detail is not null and u.o = any (coalesce(v_kept, '{}') || coalesce(v_applied, '{}'))) c having count(*) > 0;
  end if;
  -- last, so that a run that is handed over, perhaps one of these, is as it will be
  if p_key is not null and v_applied is not null then
    if cardinality(p_id) = 1 then
      v_keys := p_key;
      v_claims := p_next_claim_id;
      v_positions := array[1];
      v_runs := p_id;
    else
      select array_agg(u.key), array_agg(u.claim_id), array_agg(e.queue), array_agg(u.o), array_agg(u.id)
      into v_keys, v_claims, v_queues, v_positions, v_runs
      from unnest(v_applied, v_queues) e(o, queue)
      cross join lateral (select p_key[e.o] as key, p_next_claim_id[e.o] as claim_id, p_id[e.o] as id, e.o) u
      where u.key is not null;
    end if;
    if v_keys is not null then
      select f.claimable, f.handed into v_freed from free_keys(v_keys, v_now, p_worker, v_claims, v_queues, v_runs) f;
      claimable := claimable || v_freed.claimable;
      if v_freed.handed <> '[]' then
        handed := (select jsonb_agg(jsonb_build_array(v_positions[(h.value ->> 0)::int], h.value -> 1)) from jsonb_array_elements(v_freed.handed) h);
      end if;
    end if;
  end if;

  v_applied := coalesce(v_kept, '{}') || coalesce(v_applied, '{}');
  if cardinality(v_applied) = cardinality(p_id) then
    return;
  end if;
  others := others || (
    select jsonb_agg(jsonb_build_object('position', u.o, 'inboxSeq', r.inbox_seq, 'verdict',
      case when u.id <> all (v_locked) and r.id is not null then 'busy'
           when r.claim_id = u.claim_id and r.turn = u.turn + 1 then 'already'
           else 'stale' end))
    from unnest(p_id, p_claim_id, p_turn) with ordinality u(id, claim_id, turn, o)
    left join lateral (select t.id, t.claim_id, t.turn, t.inbox_seq from runs t where t.id = u.id limit 1) r on true
    where u.o <> all (v_applied));
end $f$;
