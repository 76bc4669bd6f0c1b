-- pawl: call
-- Starts a run and answers its id; if a key is taken, the id of its holder. Without a version it
-- takes the highest that a live worker serves, else the highest registered, else the first that a
-- worker registers. rate_limit is `limit` or `limit:key`.
create or replace function start(
  name text, input jsonb default null, version int default null, queue text default null, priority int default null,
  delay interval default null, at timestamptz default null,
  idempotency_key text default null, unique_key text default null, unique_scope text[] default null, partition_key text default null,
  rate_limit text default null, weight int default null, retention interval default null, step text default null
) returns bigint language plpgsql as $f$
declare
  c_bytes constant int := 16 * 1024 * 1024;      -- the most that one claim answers
  v_input text := coalesce(input, 'null')::text;
  v_run new_run;
  v_id bigint;
begin
  perform require_name('definition', name, true);
  if queue is not null then
    perform require_name('queue', queue, true);
  end if;
  if step is not null then
    perform require_name('step', step, false);
  end if;
  if octet_length(v_input) > c_bytes then
    raise exception 'the input must be at most % bytes long as JSON, not %', c_bytes, octet_length(v_input) using errcode = 'PW422';
  end if;
  if delay is not null and at is not null then
    raise exception 'start got both delay and at: give delay or at, not both' using errcode = 'PW422';
  end if;
  perform require_delay('delay', delay);
  perform require_delay('retention', retention);
  if version < 1 or weight < 1 or priority not between -32768 and 32767 then
    raise exception 'version and weight must be at least 1, and priority from -32768 to 32767, not %, % and %',
      coalesce(version::text, 'null'), coalesce(weight::text, 'null'), coalesce(priority::text, 'null') using errcode = 'PW422';
  end if;
  if '' in (idempotency_key, unique_key, partition_key) or (unique_scope is not null and unique_key is null) then
    raise exception 'keys must not be empty, and unique_scope has no meaning without unique_key: leave out empty keys, or give unique_key'
      using errcode = 'PW422';
  end if;
  if starts_with(idempotency_key, 'schedule/') then
    raise exception 'idempotency_key must not begin with "schedule/", which is reserved for the runs of schedules; not %',
      quote_literal(left(idempotency_key, 60)) using errcode = 'PW422';
  end if;
  if cardinality(unique_scope) = 0 or array_position(unique_scope, null) is not null
      or not unique_scope <@ enum_range(null::run_status)::text[] then
    raise exception 'unique_scope must be a list of phases, one or more of %, not %',
      array_to_string(enum_range(null::run_status), ', '), left(unique_scope::text, 200) using errcode = 'PW422';
  end if;
  v_run.name := name;
  v_run.version := version;
  v_run.queue := queue;
  v_run.priority := priority;
  v_run.step := step;
  v_run.delay_ms := extract(epoch from delay) * 1000;
  v_run.at := at;
  v_run.retention_ms := extract(epoch from retention) * 1000;
  v_run.idempotency_key := idempotency_key;
  v_run.unique_key := convert_to(unique_key, 'UTF8');
  v_run.unique_scope := unique_scope;
  v_run.partition_key := partition_key;
  v_run.rate_limit := rate_limit;
  v_run.weight := weight;
  select s.id into strict v_id from start_runs(array[v_run], array[v_input], true, true, null, null) s;
  return v_id;
end $f$;
