-- start, signal, send and publish for people and programs that speak SQL: one run, one signal, one message, named arguments, checked like
-- those of the library. They run in whatever transaction they are called in, wait for a key or a run that somebody has locked, and
-- raise: PW404 no such run, PW409 keys or a run that cannot take it, PW413 a full inbox, PW422 a wrong argument.

-- Refuses a name that the library would refuse. Short ones are those of definitions and queues, long ones of steps and signals.
-- Short names that begin with pawl- are the engine's own.
create function require_name(p_what text, p_name text, p_is_short boolean) returns void language plpgsql as $f$
begin
  if p_is_short and starts_with(p_name, 'pawl-') then
    raise exception 'the name of a % must not begin with "pawl-", which is reserved for Pawl itself; not %', p_what,
      quote_literal(left(p_name, 60)) using errcode = 'PW422';
  end if;
  if p_name ~ (case when p_is_short then '^[a-z0-9][a-z0-9_-]{0,47}$' else '^[a-zA-Z0-9._-]{1,128}$' end) then
    return;
  end if;
  raise exception 'the name of a % must be %, not %', p_what,
    case when p_is_short then '1 to 48 characters of a-z, 0-9, _ and -, the first a letter or digit'
      else '1 to 128 characters of a-z, A-Z, 0-9, ., _ and -' end,
    coalesce(quote_literal(left(p_name, 60)), 'null')
    using errcode = 'PW422';
end $f$;

-- Starts a run and answers its id; if a key is taken, the id of its holder. Without a version: the highest that a live worker
-- serves, else the highest registered, else the first that comes to be. rate_limit is `limit` or `limit:key`.
create function start(
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
    0::smallint, array[name], array[version], null::text[], array[queue], array[priority]::smallint[], array[v_input], array[step],
    array[extract(epoch from delay) * 1000]::bigint[], array[at], array[extract(epoch from retention) * 1000]::bigint[],
    array[idempotency_key], array[convert_to(unique_key, 'UTF8')], array[unique_scope::text],
    array[partition_key], array[rate_limit], array[weight], null::bigint[], null::int[], null::int[], null::text[],
    true, null::text, null::bigint, null::boolean[]) s;
  return v_id;
end $f$;

-- Sends a signal to a run, and answers whether it was delivered: false, if the run had one with this dedup key before.
create function signal(run_id bigint, name text, payload jsonb default '{}', dedup_key text default null)
returns boolean language plpgsql as $f$
declare
  c_bytes constant int := 16 * 1024 * 1024;
  v_verdict text;
begin
  perform require_name('signal', name, false);
  if octet_length(payload::text) > c_bytes then
    raise exception 'the payload must be at most % bytes long as JSON, not %', c_bytes, octet_length(payload::text) using errcode = 'PW422';
  end if;
  if payload is null or payload = 'null' then
    raise exception 'the payload of signal % is null; leave it out, or give an object or a value', quote_literal(name)
      using errcode = 'PW422';
  end if;
  if octet_length(dedup_key) not between 1 and 512 then
    raise exception 'dedup_key must be 1 to 512 bytes long, not %', octet_length(dedup_key) using errcode = 'PW422';
  end if;
  select s.verdict into strict v_verdict
  from signal(0::smallint, array[run_id], array[name], array[payload::text], array[dedup_key], true) s;
  case v_verdict
    when 'not_found' then
      raise exception 'there is no run %', run_id using errcode = 'PW404';
    when 'ended' then
      raise exception 'run % has ended: it takes no more signals', run_id using errcode = 'PW409';
    when 'full' then
      raise exception '10,000 signals wait in the inbox of run %: it takes no more until it consumes some', run_id using errcode = 'PW413';
    else
      return v_verdict = 'delivered';
  end case;
end $f$;

-- Sends a message to a queue and answers its id; if a message with this dedup key is in the queue, the id of that one.
create function send(queue text, body jsonb, delay interval default null, "group" text default null, dedup_key text default null)
returns bigint language plpgsql as $f$
declare
  c_bytes constant int := 16 * 1024 * 1024;      -- what one receive may answer
  v_body text := coalesce(body, 'null')::text;
  v_id bigint;
begin
  perform require_name('queue', queue, true);
  if length(queue) > 43 and queue !~ '-dead$' then
    raise exception 'the name of a queue of messages has at most 43 characters, not %', length(queue) using errcode = 'PW422';
  end if;
  if octet_length(v_body) > c_bytes then
    raise exception 'the body must be at most % bytes long as JSON, not %', c_bytes, octet_length(v_body) using errcode = 'PW422';
  end if;
  perform require_delay('delay', delay);
  if octet_length("group") not between 1 and 256 or octet_length(dedup_key) not between 1 and 512 then
    raise exception 'group must be 1 to 256 bytes long, and dedup_key 1 to 512' using errcode = 'PW422';
  end if;
  select s.id into strict v_id from send(0::smallint, array[queue], array[v_body], array[extract(epoch from delay) * 1000]::bigint[],
    array["group"], case when dedup_key is not null then array[dedup_key] end, true) s;
  return v_id;
end $f$;

-- Publishes to a topic and answers how many runs, messages and deliveries came of it, as JSON.
create function publish(topic text, body jsonb, dedup_key text default null) returns jsonb language plpgsql as $f$
declare
  c_bytes constant int := 16 * 1024 * 1024;
  v_body text := coalesce(body, 'null')::text;
begin
  perform require_name('topic', topic, false);
  if octet_length(v_body) > c_bytes then
    raise exception 'the body must be at most % bytes long as JSON, not %', c_bytes, octet_length(v_body) using errcode = 'PW422';
  end if;
  if octet_length(dedup_key) not between 1 and 512 then
    raise exception 'dedup_key must be 1 to 512 bytes long, not %', octet_length(dedup_key) using errcode = 'PW422';
  end if;
  return (select jsonb_build_object('runs', p.runs, 'messages', p.messages, 'deliveries', p.deliveries, 'created', p.created)
    from publish(0::smallint, topic, v_body, dedup_key) p);
end $f$;
