-- pawl: call
-- Resumes paused runs: each goes on where it stopped, at its old place in the order of claims. A
-- time that passed meanwhile is due at once.
-- Answers one row per id: `verdict` is resumed, already (it was not paused), ended, not_found or
-- busy, as in pause_runs, with lines in the action log. The first row also has the claimable runs
-- made, by queue. Locks in id order with SKIP LOCKED, then the partition keys of runs that are first
-- in line (free_keys), then the concurrency limits of runs that wait for a slot (free_slots).
create or replace function resume_runs(p_id bigint[], p_actor text default null)
returns table (id bigint, verdict text, status run_status, name text, claimable text)
language plpgsql as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
  v_locked bigint[];
  v_resumed bigint[];
  v_keys text[];
  v_slots text[];
  v_slotted bigint[];
  v_claimable jsonb;
begin
  perform require_read_committed();
  perform require_durable_commit();
  v_locked := lock_runs(p_id);
  with resumed as (
    update runs r set hold = r.hold & ~16
    from (select u.id from unnest(v_locked) u(id) limit cardinality(v_locked)) v
    where r.id = v.id and ((r.hold & 16) <> 0) is true
    returning r.id, r.hold, r.queue, r.priority, r.eligible_at, r.partition_key, r.concurrency, r.status in ('runnable', 'awaiting_signal') as is_waiting)
  select array_agg(c.id), array_agg(distinct c.partition_key) filter (where (c.hold & 1) <> 0),
    array_agg(distinct c.concurrency) filter (where (c.hold & 32) <> 0), array_agg(c.id) filter (where (c.hold & 32) <> 0),
    coalesce(jsonb_agg(distinct jsonb_build_array(c.queue, c.priority, to_us(c.eligible_at)))
      filter (where c.hold = 0 and c.is_waiting and c.eligible_at <= v_now), '[]')
  into v_resumed, v_keys, v_slots, v_slotted, v_claimable from resumed c;
  if v_resumed is not null then
    update extras x set paused = null from (select u.id from unnest(v_resumed) u(id) limit cardinality(v_resumed)) v where x.run_id = v.id;
  end if;
  perform note_action(p_actor, 'runs.resume', u.id::text) from unnest(v_resumed) u(id);
  if v_keys is not null then
    v_claimable := v_claimable || (select f.claimable from free_keys(v_keys, v_now) f);
  end if;
  if v_slots is not null then
    perform put_slots(v_slotted, null);
    v_claimable := v_claimable || free_slots(v_slots, v_now);
  end if;
  claimable := case when v_claimable <> '[]' then v_claimable::text end;
  for id, verdict, status, name in
    select u.id, case when r.status is null then 'not_found' when u.id = any (v_resumed) then 'resumed'
        when u.id <> all (v_locked) then 'busy' when r.status in ('done', 'failed', 'cancelled') then 'ended'
        else 'already' end,
      r.status, r.name
    from unnest(p_id) u(id)
    left join lateral (select t.status, t.name from runs t where t.id = u.id and t.id < first_message_id() limit 1) r on true
  loop
    return next;
    claimable := null;
  end loop;
end $f$;
