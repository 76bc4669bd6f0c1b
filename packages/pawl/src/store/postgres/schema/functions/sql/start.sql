-- pawl: call
-- Starts a run and answers its id; if a key is taken, the id of its holder. Without a version: the highest that a live worker
-- serves, else the highest registered, else the first that comes to be. rate_limit is `limit` or `limit:key`.
create or replace function start(
  name text, input jsonb default null, version int default null, queue text default null, priority int default null,
  delay interval default null, at timestamptz default null,
  idempotency_key text default null, unique_key text default null, unique_scope text[] default null, partition_key text default null,
  rate_limit text default null, weight int default null, retention interval default null, step text default null
) returns bigint language plpgsql as $f$
declare
  c_bytes constant int := 16 * 1024 * 1024;      -- what one claim may answer
  v_input text := coalesce(input, 'null')::text;
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
    raise exception 'start takes delay or at, not both' using errcode = 'PW422';
  end if;
  perform require_delay('delay', delay);
  perform require_delay('retention', retention);
  if version < 1 or weight < 1 or priority not between -32768 and 32767 then
    raise exception 'version and weight must be at least 1, and priority from -32768 to 32767' using errcode = 'PW422';
  end if;
  if '' in (idempotency_key, unique_key, partition_key) or (unique_scope is not null and unique_key is null) then
    raise exception 'keys must not be empty, and unique_scope has no meaning without unique_key' using errcode = 'PW422';
  end if;
  if cardinality(unique_scope) = 0 or array_position(unique_scope, null) is not null
      or not unique_scope <@ enum_range(null::run_status)::text[] then
    raise exception 'unique_scope must be a list of phases, one or more of %, not %',
      array_to_string(enum_range(null::run_status), ', '), left(unique_scope::text, 200) using errcode = 'PW422';
  end if;
  select s.id into strict v_id from start(
    array[name], array[version], null::text[], array[queue], array[priority]::smallint[], array[v_input], array[step],
    array[extract(epoch from delay) * 1000]::bigint[], array[at], array[extract(epoch from retention) * 1000]::bigint[],
    array[idempotency_key], array[convert_to(unique_key, 'UTF8')], array[unique_scope::text],
    array[partition_key], array[rate_limit], array[weight], null::bigint[], null::int[], null::int[], null::text[],
    true, null::text, null::bigint, null::boolean[], true) s;
  return v_id;
end $f$;
