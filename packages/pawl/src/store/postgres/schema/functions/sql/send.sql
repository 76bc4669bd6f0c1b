-- pawl: call
-- Sends a message to a queue and answers its id; if a message with this dedup key is in the queue, the id of that one.
create or replace function send(queue text, body jsonb, delay interval default null, "group" text default null, dedup_key text default null)
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
  select s.id into strict v_id from send(array[queue], array[v_body], array[extract(epoch from delay) * 1000]::bigint[],
    array["group"], case when dedup_key is not null then array[dedup_key] end, true) s;
  return v_id;
end $f$;
