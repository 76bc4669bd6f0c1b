-- pawl: call
-- Pauses runs: sets bit 16 of hold, so that no claim takes them. A run that is being executed
-- finishes its step; then commit or record tells its worker. Signals are still delivered, and the
-- wait for a time or a signal may end, but the run stays.
-- A paused run keeps its place in the line for its partition key: the runs behind it wait. So the
-- order of the key is kept. It leaves the line for a slot of its concurrency limit.
-- Answers one row per id: `verdict` is paused, already (it was paused before: who and why stay),
-- ended (terminal, see status), not_found, or busy (another transaction has the run locked; nothing
-- was done, send it again). Each paused run is a line of the action log (p_actor, see note_action).
-- Locks in id order with SKIP LOCKED.
create or replace function pause_runs(p_id bigint[], p_by text, p_reason text, p_actor text default null)
returns table (id bigint, verdict text, status run_status, name text)
language plpgsql as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
  v_locked bigint[];
  v_paused bigint[];
  v_slotted bigint[];
begin
  perform require_read_committed();
  perform require_durable_commit();
  v_locked := lock_runs(p_id);
  with paused as (
    update runs r set hold = r.hold | 16, has_extras = true
    from (select u.id from unnest(v_locked) u(id) limit cardinality(v_locked)) v
    where r.id = v.id and (r.status not in ('done', 'failed', 'cancelled') and (r.hold & 16) = 0) is true
    returning r.id, r.name, r.concurrency is not null and r.locked_by is null as is_limited
  ), noted as (
    insert into extras (run_id, name, paused)
    select p.id, p.name, jsonb_build_object('by', p_by, 'reason', p_reason, 'since', iso(v_now)) from paused p
    on conflict (run_id) do update set paused = excluded.paused)
  select array_agg(p.id), array_agg(p.id) filter (where p.is_limited) into v_paused, v_slotted from paused p;
  perform note_action(p_actor, 'runs.pause', u.id::text, case when p_reason is not null then jsonb_build_object('reason', p_reason) end)
    from unnest(v_paused) u(id);
  if v_slotted is not null then
    perform note_slots_to_repair(leave_slots(v_slotted));
  end if;
  return query
    select u.id, case when r.status is null then 'not_found' when u.id = any (v_paused) then 'paused'
        when u.id <> all (v_locked) then 'busy' when r.status in ('done', 'failed', 'cancelled') then 'ended'
        else 'already' end,
      r.status, r.name
    from unnest(p_id) u(id)
    left join lateral (select t.status, t.name from runs t where t.id = u.id and t.id < first_message_id() limit 1) r on true;
end $f$;

-- Locks those of these runs that no other transaction has locked, in id order.
create or replace function lock_runs(p_id bigint[]) returns bigint[] language plpgsql as $f$
begin
  return array(
    select l.id from (select distinct u.id from unnest(p_id) u(id) where u.id < first_message_id() order by u.id) v
    cross join lateral (select r.id from runs r where r.id = v.id limit 1 for no key update skip locked) l);
end $f$;
