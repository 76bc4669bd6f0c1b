-- pawl: call
-- Starts one run of a known definition, without a rate limit, in one statement, because somebody
-- waits for a lone start. Answers its id, or no row if one of its keys is taken: nothing was written,
-- and start_runs tells by whom. With p_worker it is inserted already claimed; no row if the database is
-- held or its queue or definition paused, and start_runs inserts it unclaimed. Rides runs_unique and runs_idempotency.
create or replace function start_one(p_run new_run, p_input text, p_patient boolean, p_worker text, p_claim_id bigint) returns table (id bigint)
language plpgsql as $f$
declare
  v_now timestamptz := clock();
begin
  if current_setting('synchronous_commit') = 'off' then
    perform require_durable_commit();
  end if;
  if octet_length(p_run.name) > 256 or octet_length(p_run.queue) > 256 or octet_length(p_run.step) > 256 or octet_length(p_run.idempotency_key) > 512
      or octet_length(p_run.unique_key) > 512 or octet_length(p_run.partition_key) > 512 or starts_with(p_run.partition_key, chr(1)) then
    perform require_names(array[p_run]);
  end if;
  if p_run.at is not null then
    perform require_time('at', p_run.at);
  end if;
  if not p_patient and (p_run.unique_key is not null or p_run.idempotency_key is not null) then
    perform set_config('lock_timeout', '100ms', true);
  end if;
  return query
    insert into runs (id, status, name, version, kind, queue, priority, input, step, eligible_at, inserted_at, retention,
      idempotency_key, unique_key, unique_scope, partition_key, trace, locked_by, claim_id)
    select nextval('run_ids') << 6,
      case when p_worker is null then 'runnable'::run_status else 'executing'::run_status end,
      p_run.name, p_run.version, p_run.kind, coalesce(p_run.queue, 'default'), coalesce(p_run.priority, 0::smallint), p_input::jsonb, p_run.step,
      coalesce(p_run.at, v_now + coalesce(p_run.delay_ms, 0) * interval '1 millisecond'), v_now,
      least(coalesce(p_run.retention_ms * interval '1 millisecond', '720 hours'), s.retention_ceiling),
      p_run.idempotency_key, p_run.unique_key,
      case when p_run.unique_key is not null then
        coalesce(p_run.unique_scope, '{runnable,executing,awaiting_signal,awaiting_children}')::run_status[] end,
      p_run.partition_key, p_run.trace, p_worker, case when p_worker is not null then p_claim_id end
    from settings s
    where (p_worker is null or not s.held and not is_paused(coalesce(p_run.queue, 'default'), p_run.name, p_run.version))
      -- a scope of its own may leave out where the run begins: then nothing collides, and the holder is looked up
      and (p_run.unique_scope is null or (select r.id from runs r where r.unique_guard = p_run.unique_key limit 1) is null)
    on conflict do nothing
    returning runs.id;
end $f$;
