-- pawl: call
-- The facts about why a run makes no progress, as one JSON object; null if there is no such run.
-- The client makes the sentence. `served` and `queueServed`: by a live worker; `holder`: the run
-- that holds its partition key; `first`: the run that is first in line for it; `slots`: those of its
-- concurrency limit; `schedule`: the key of schedule_of.
create or replace function why(p_id bigint) returns jsonb language plpgsql stable as $f$
declare
  v_now timestamptz := clock();
  v_clock timestamptz := clock_timestamp();
  v_run runs;
  v_extras extras;
begin
  select r.* into v_run from runs r where r.id = p_id and r.id < first_message_id();
  if not found then
    return null;
  end if;
  v_extras := extras_of(v_run);
  return jsonb_build_object(
    'name', v_run.name, 'version', v_run.version, 'phase', v_run.status, 'step', v_run.step, 'queue', v_run.queue,
    'attempt', v_run.attempt, 'crashes', v_run.crashes, 'hold', v_run.hold, 'databaseHeld', is_held(), 'throttled', v_run.throttled,
    'rateLimit', v_run.rate_limit, 'partitionKey', v_run.partition_key,
    'deadlineAt', iso(v_extras.deadline_at), 'debounceKey', v_extras.debounce_key, 'debounceUntil', iso(v_extras.debounce_until),
    'now', iso(v_now), 'eligibleAt', iso(within_reach(nullif(v_run.eligible_at, 'infinity'))), 'completedAt', iso(v_run.completed_at),
    'error', v_run.error,
    'schedule', schedule_of(v_run.idempotency_key, v_extras.origin_id),
    'rerunAs', (select n.run_id::text from extras n where n.rerun_of = p_id order by n.run_id desc limit 1),
    'awaits', v_run.awaits, 'childrenPending', v_run.children_pending,
    'inbox', (
      select coalesce(jsonb_object_agg(s.name, s.n), '{}') from (
        select t.name, count(*) as n from signals t
        where t.run_id = p_id and t.consumed_at is null group by t.name order by count(*) desc limit 100) s),
    'unfinished', (
      select coalesce(jsonb_agg(c.id::text), '[]') from (
        select t.id from runs t where t.parent_id = p_id and t.child_of = v_run.spawn
          and t.status not in ('done', 'failed', 'cancelled') and v_run.status = 'awaiting_children'
        order by t.position limit 10) c),
    'worker', v_run.locked_by,
    'leaseUntil', (select iso(w.seen_at + w.lease) from workers w where w.id = v_run.locked_by),
    'workerAlive', (select w.seen_at + w.lease > v_clock from workers w where w.id = v_run.locked_by),
    'served', is_served(v_run.name, v_run.version, null),
    'registered', exists (select 1 from definitions d where d.name = v_run.name and d.version = v_run.version),
    'servedVersions', (
      select coalesce(jsonb_agg(d.version order by d.version), '[]') from definitions d
      where d.name = v_run.name and is_served(d.name, d.version, null)),
    'queueServed', is_served(v_run.name, v_run.version, v_run.queue),
    'holder', (
      select jsonb_build_object('runId', h.id::text, 'worker', h.locked_by, 'phase', h.status) from runs h
      where v_run.partition_key is not null and h.partition_key = v_run.partition_key and h.id <> p_id
        and (h.locked_by is not null or h.lease_expires_at is not null) limit 1),
    'first', first_of_key(v_run.partition_key, v_now)::text,
    'concurrency', v_run.concurrency,
    'slots', case when v_run.concurrency is not null then slot_facts(v_run) end,
    'paused', pause_of(v_run));
end $f$;
