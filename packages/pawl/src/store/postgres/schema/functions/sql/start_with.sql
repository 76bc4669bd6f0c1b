-- pawl: call
-- Starts a run like start, with the options that start has no argument for:
--   select pawl.start_with('ship', '{"order": 42}', '{"tags": {"customer": "42"}, "timeoutMs": 3600000,
--     "correlationKey": "order-42", "debounce": {"key": "order-42", "delayMs": 5000}}');
-- options may also have members of new_run: queue, priority, idempotency_key, unique_key (as text),
-- partition_key, rate_limit, weight, delay_ms, at, retention_ms, step, version.
create or replace function start_with(name text, input jsonb, options jsonb) returns bigint language plpgsql as $f$
declare
  c_bytes constant int := 16 * 1024 * 1024;      -- the most that one claim answers
  c_rare constant text[] := '{tags,timeoutMs,debounce,correlationKey,concurrency}';
  c_plain constant text[] :=
    '{queue,priority,idempotency_key,unique_key,partition_key,rate_limit,weight,delay_ms,at,retention_ms,step,version}';
  v_input text := coalesce(input, 'null')::text;
  v_unknown text;
  v_run new_run;
  v_rare jsonb;
  v_id bigint;
begin
  perform require_name('definition', name, true);
  select k.key into v_unknown from jsonb_object_keys(options) k(key) where k.key <> all (c_rare || c_plain) limit 1;
  if found then
    raise exception 'unknown option %: start_with takes %', quote_literal(left(v_unknown, 60)), array_to_string(c_rare || c_plain, ', ')
      using errcode = 'PW422';
  end if;
  if octet_length(v_input) > c_bytes then
    raise exception 'the input must be at most % bytes long as JSON, not %', c_bytes, octet_length(v_input) using errcode = 'PW422';
  end if;
  perform require_name('queue', options ->> 'queue', true) where options ? 'queue';
  perform require_name('step', options ->> 'step', false) where options ? 'step';
  v_run := jsonb_populate_record(null::new_run, options - c_rare - 'unique_key'::text);
  if '' in (v_run.idempotency_key, options ->> 'unique_key', v_run.partition_key) or v_run.version < 1 or v_run.weight < 1
      or v_run.delay_ms < 0 or v_run.retention_ms < 0 or (v_run.delay_ms is not null and v_run.at is not null) then
    raise exception 'keys must not be empty, version and weight are at least 1, times are not negative, and delay_ms excludes at: change the options'
      using errcode = 'PW422';
  end if;
  v_run.name := name;
  v_run.unique_key := convert_to(options ->> 'unique_key', 'UTF8');
  select jsonb_object_agg(r.key, r.value) into v_rare from jsonb_each(options) r where r.key = any (c_rare);
  v_run.options := v_rare::text;
  select s.id into strict v_id from start_runs(array[v_run], array[v_input], true, true, null, null) s;
  return v_id;
end $f$;
