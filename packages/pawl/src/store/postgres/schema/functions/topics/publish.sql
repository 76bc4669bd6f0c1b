-- pawl: call
-- Publishes to a topic, in one transaction. Starts a run for each subscribed workflow, with the
-- body as its input. Sends a message to each queue. Starts a delivery (`pawl-delivery`, which
-- servers serve) for each http target. Answers how many of each, and the queues that got messages
-- as JSON.
-- With a dedup key it keeps the publication for a day (a row of publications, inserted first).
-- Publishing with the same key to the same topic does nothing and answers the same numbers. It
-- waits for one that is not committed yet, or, if not p_patient, fails with 55P03.
-- Every target gets a copy of the body, 16 MiB of them at a time and 256 MiB at most: more raises
-- PW413. Rides publications_pkey.
create or replace function publish(p_topic text, p_body text, p_dedup_key text, p_patient boolean)
returns table (runs int, messages int, deliveries int, created boolean, queues text) language plpgsql as $f$
#variable_conflict use_column
declare
  c_most constant bigint := 256 * 1024 * 1024;
  c_at_once constant int := 16 * 1024 * 1024;
  v_now timestamptz := clock();
  v_body jsonb := p_body::jsonb;
  v_wanted bigint[];         -- the subscriptions
  v_each int := greatest(1, c_at_once / greatest(1, octet_length(p_body)));
  v_runs new_run[];
  v_inputs text[];
  v_queues text[];
begin
  perform require_durable_commit();
  perform require_short_names('topic', array[p_topic]);
  if not p_patient then
    perform set_config('lock_timeout', '100ms', true);
  end if;
  select array_agg(s.id order by s.id), array_agg(s.target ->> 'queue' order by s.id) filter (where s.type = 'queue'),
    count(*) filter (where s.type = 'workflow'), count(*) filter (where s.type = 'queue'), count(*) filter (where s.type = 'http')
  into v_wanted, v_queues, runs, messages, deliveries
  from (select t.id, t.target, t.target ->> 'type' as type from subscriptions t
    where t.pattern = p_topic or (t.pattern ~ '[*#]' and topic_matches(t.pattern, p_topic))) s;
  if cardinality(v_wanted) * octet_length(p_body)::bigint > c_most then
    raise exception '% subscriptions want the topic %, and each would get a copy of the body of % bytes, over % bytes together: '
      'publish a reference to the data instead, or delete some of the subscriptions',
      cardinality(v_wanted), quote_literal(p_topic), octet_length(p_body), c_most using errcode = 'PW413';
  end if;
  created := true;
  queues := coalesce(to_jsonb(v_queues), '[]')::text;

  if p_dedup_key is not null then
    for v_round in 1 .. 20 loop
      insert into publications (topic, dedup_key, runs, messages, deliveries, expires_at)
        values (p_topic, p_dedup_key, runs, messages, deliveries, v_now + interval '1 day')
        on conflict do nothing;
      exit when found;
      select p.runs, p.messages, p.deliveries into runs, messages, deliveries from publications p
        where p.topic = p_topic and p.dedup_key = p_dedup_key;
      if found then
        created := false;
        queues := '[]';
        return next;
        return;
      end if;
    end loop;
  end if;
  for v_from in 1 .. coalesce(cardinality(v_wanted), 0) by v_each loop
    select array_agg(jsonb_populate_record(null::new_run, jsonb_build_object(
        'name', case when s.type = 'http' then 'pawl-delivery' else s.target ->> 'name' end)) order by s.id) filter (where s.type <> 'queue'),
      array_agg(case when s.type = 'http'
          then jsonb_build_object('subscription', s.id::text, 'topic', p_topic, 'body', v_body)::text
          else p_body end order by s.id) filter (where s.type <> 'queue'),
      array_agg(s.target ->> 'queue' order by s.id) filter (where s.type = 'queue')
    into v_runs, v_inputs, v_queues
    from (select t.id, t.target, t.target ->> 'type' as type from subscriptions t
      where t.id = any (v_wanted[v_from : v_from + v_each - 1])) s;
    if v_runs is not null then
      perform start_runs(v_runs, v_inputs, true, true, null, null);
    end if;
    if v_queues is not null then
      perform send(v_queues, array_fill(p_body, array[cardinality(v_queues)]), null::bigint[], null::text[], null::text[], true);
    end if;
  end loop;
  return next;
end $f$;
