-- pawl: call
-- Sends a signal to a run. Answers false if the run had one with this dedup key before, else true.
create or replace function signal(run_id bigint, name text, payload jsonb default '{}', dedup_key text default null)
returns boolean language plpgsql as $f$
declare
  v_verdict text;
begin
  perform require_signal(name, payload, dedup_key);
  select s.verdict into strict v_verdict
  from signal(array[run_id], array[name], array[payload::text], array[dedup_key], true) s;
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

-- Sends a signal to every live run with a correlation key, of one definition if it is given. Answers
-- the ids of the runs that got it: not those that had one with this dedup key, or a full inbox.
create or replace function signal_correlated(
  correlation_key text, name text, payload jsonb default '{}', dedup_key text default null, definition text default null
) returns setof bigint language plpgsql as $f$
begin
  perform require_signal(name, payload, dedup_key);
  return query
    select d.run_id::bigint from deliver_correlated(correlation_key, definition, name, payload::text, dedup_key, true) d
    where d.verdict = 'delivered';
end $f$;

-- Raises on a signal that the library would refuse.
create or replace function require_signal(name text, payload jsonb, dedup_key text) returns void language plpgsql as $f$
declare
  c_bytes constant int := 16 * 1024 * 1024;
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
end $f$;
