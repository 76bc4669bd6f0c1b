-- pawl: call
-- Publishes to a topic and answers how many runs, messages and deliveries came of it, as JSON.
create or replace function publish(topic text, body jsonb, dedup_key text default null) returns jsonb language plpgsql as $f$
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
    from publish(topic, v_body, dedup_key, true) p);
end $f$;
