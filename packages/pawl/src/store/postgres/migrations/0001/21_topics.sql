-- Topics. A subscription binds a pattern to a target: {"type": "workflow", "name"}, {"type": "queue", "queue"} or {"type": "http", "url"}.
-- Its secret is stored beside the target and given to nobody but the deliverer (subscription_target).

-- Whether a pattern wants a topic. Words are separated by dots; `*` is any one word, `#`, which is the last, any number of them.
create function topic_matches(p_pattern text, p_topic text) returns boolean language plpgsql immutable as $f$
declare
  v_pattern text[] := string_to_array(p_pattern, '.');
  v_topic text[] := string_to_array(p_topic, '.');
begin
  for i in 1 .. cardinality(v_pattern) loop
    if v_pattern[i] = '#' then
      return true;
    end if;
    if i > cardinality(v_topic) or (v_pattern[i] <> '*' and v_pattern[i] <> v_topic[i]) then
      return false;
    end if;
  end loop;
  return cardinality(v_pattern) = cardinality(v_topic);
end $f$;

-- Whether some topic is wanted by both patterns.
create function patterns_meet(p_one text, p_other text) returns boolean language plpgsql immutable as $f$
declare
  v_one text[] := string_to_array(p_one, '.');
  v_other text[] := string_to_array(p_other, '.');
begin
  for i in 1 .. greatest(cardinality(v_one), cardinality(v_other)) loop
    if v_one[i] = '#' or v_other[i] = '#' then
      return true;
    end if;
    if v_one[i] is null or v_other[i] is null or (v_one[i] <> v_other[i] and v_one[i] <> '*' and v_other[i] <> '*') then
      return false;
    end if;
  end loop;
  return true;
end $f$;

-- Makes a subscription and answers its id; if there is one of this pattern and target, that one, with the secret given now, or (null)
-- the one it has.
-- p_owner is the token that makes it. So many of one token may want the same topic that a publication of the usual limit, 1 MiB, stays within
-- what a publication may write. One token alone cannot make the publications of others fail; several together can.
create function subscribe(p_pattern text, p_target jsonb, p_secret text, p_owner text default null)
returns table (id bigint, created boolean) language plpgsql as $f$
#variable_conflict use_column
declare
  c_most constant int := 10000;    -- a publication looks at all of them
  c_meeting constant int := 250;   -- of one token
begin
  perform require_durable_commit();
  if starts_with(coalesce(p_target ->> 'name', p_target ->> 'queue'), 'pawl-') then
    raise exception 'the target of a subscription must not begin with "pawl-", which is reserved for Pawl itself; not %', p_target
      using errcode = 'PW422';
  end if;
  perform require_short_names('topic', array[p_pattern]);
  if (select count(*) from subscriptions) >= c_most then
    raise exception 'there are % subscriptions, which is as many as there may be; delete some', c_most using errcode = 'PW422';
  end if;
  if p_owner is not null and (select count(*) from subscriptions s where s.owner = p_owner and patterns_meet(s.pattern, p_pattern)
      and (s.pattern, s.target) is distinct from (p_pattern, p_target)) >= c_meeting then
    raise exception 'this token has % subscriptions that want the same topics as %, which is as many as it may have: '
      'subscribe one workflow that passes the message on, or delete some', c_meeting, quote_literal(p_pattern) using errcode = 'PW422';
  end if;
  return query
    insert into subscriptions as s (pattern, target, secret, owner, inserted_at) values (p_pattern, p_target, p_secret, p_owner, now())
    on conflict (pattern, target) do update set secret = coalesce(excluded.secret, s.secret)
    returning s.id, s.xmax = 0;
end $f$;

-- Deletes a subscription, of that pattern if one is given, and answers whether there was one.
create function unsubscribe(p_id bigint, p_pattern text) returns boolean language plpgsql as $f$
begin
  perform require_durable_commit();
  delete from subscriptions s where s.id = p_id and (p_pattern is null or s.pattern = p_pattern);
  return found;
end $f$;

-- Up to p_limit subscriptions after an id, by id; of one pattern, or (null) all. Never their secrets.
create function list_subscriptions(p_pattern text, p_after bigint, p_limit int)
returns table (id bigint, pattern text, target text, has_secret boolean, inserted_at text) language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select s.id, s.pattern, s.target::text, s.secret is not null, iso(s.inserted_at) from subscriptions s
    where s.id > p_after and (p_pattern is null or s.pattern = p_pattern) order by s.id limit p_limit;
end $f$;

-- Where a delivery goes, and with which secret it is signed; no row if the subscription was deleted.
create function subscription_target(p_id bigint) returns table (target text, secret text) language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query select s.target::text, s.secret from subscriptions s where s.id = p_id;
end $f$;

-- Publishes to a topic, in one transaction: starts a run for each workflow that wants it (the body is its input), sends a message to each
-- queue, and starts a delivery (`pawl-delivery`, which servers serve) for each http target. Answers how many of each, and, as JSON, the
-- queues that got messages. With a dedup key the publication is kept for a day (a row of runs of the kind
-- `publication`, name `~.topic`, inserted first), and publishing with the same key to the same topic
-- does nothing and answers the same numbers; one that is not committed yet is waited for, or (not p_patient) the call fails with 55P03.
-- Everybody gets a copy of the body, 16 MiB of them at a time and 256 MiB at most: more is refused (PW413). Rides runs_idempotency.
create function publish(p_shard smallint, p_topic text, p_body text, p_dedup_key text, p_patient boolean default true)
returns table (runs int, messages int, deliveries int, created boolean, queues text) language plpgsql as $f$
#variable_conflict use_column
declare
  c_most constant bigint := 256 * 1024 * 1024;
  c_at_once constant int := 16 * 1024 * 1024;
  v_shard smallint := ~p_shard;
  v_now timestamptz := now();
  v_body jsonb := p_body::jsonb;
  v_wanted bigint[];         -- the subscriptions
  v_each int := greatest(1, c_at_once / greatest(1, octet_length(p_body)));
  v_id bigint;
  v_names text[];
  v_inputs text[];
  v_queues text[];
  v_done jsonb;
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
      v_id := (nextval('run_ids') << 6) | p_shard;
      insert into runs (shard, id, status, kind, name, queue, priority, retention, input, result, eligible_at, inserted_at, completed_at,
        expires_at, idempotency_key)
      values (v_shard, v_id, 'done', 'publication', '~.' || p_topic, '~', 0, interval '0', 'null', jsonb_build_array(runs, messages, deliveries),
        v_now, v_now, v_now, v_now + interval '1 day', p_dedup_key)
      on conflict do nothing;
      exit when found;
      select r.result into v_done from runs r
        where r.shard = v_shard and r.idempotency_key = p_dedup_key and (r.name = '~.' || p_topic) is true;
      if found then
        runs := v_done ->> 0;
        messages := v_done ->> 1;
        deliveries := v_done ->> 2;
        created := false;
        queues := '[]';
        return next;
        return;
      end if;
    end loop;
  end if;
  for v_from in 1 .. coalesce(cardinality(v_wanted), 0) by v_each loop
    select array_agg(case when s.type = 'http' then 'pawl-delivery' else s.target ->> 'name' end order by s.id) filter (where s.type <> 'queue'),
      array_agg(case when s.type = 'http'
          then jsonb_build_object('subscription', s.id::text, 'topic', p_topic, 'body', v_body)::text
          else p_body end order by s.id) filter (where s.type <> 'queue'),
      array_agg(s.target ->> 'queue' order by s.id) filter (where s.type = 'queue')
    into v_names, v_inputs, v_queues
    from (select t.id, t.target, t.target ->> 'type' as type from subscriptions t
      where t.id = any (v_wanted[v_from : v_from + v_each - 1])) s;
    if v_names is not null then
      perform start(p_shard, v_names, null::int[], null::text[], null::text[], null::smallint[], v_inputs, null::text[], null::bigint[],
        null::timestamptz[], null::bigint[], null::text[], null::bytea[], null::text[], null::text[], null::text[], null::int[],
        null::bigint[], null::int[], null::int[], null::text[], true, null::text, null::bigint, null::boolean[]);
    end if;
    if v_queues is not null then
      perform send(p_shard, v_queues, array_fill(p_body, array[cardinality(v_queues)]), null::bigint[], null::text[], null::text[], true);
    end if;
  end loop;
  return next;
end $f$;
