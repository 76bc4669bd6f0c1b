-- pawl: inner
-- The rare options of new runs, by position: {tags, timeoutMs, debounce: {key, delayMs, maxDelayMs},
-- correlationKey, concurrency}, each only if it is given. Raises if one is not valid, whatever way
-- it came: the library has checked its own before.
create or replace function read_options(p_runs new_run[]) returns jsonb[] language plpgsql as $f$
declare
  v_options jsonb[];
  v_problem text;
begin
  v_options := array(select u.options::jsonb from unnest(p_runs) with ordinality u order by u.ordinality);
  select p.problem into v_problem
  from unnest(v_options, p_runs) u(more, name, version, kind, queue, priority, step, delay_ms, at, retention_ms, idempotency_key, unique_key,
    unique_scope, partition_key, rate_limit, weight, parent_id)
  cross join lateral (select case
    when octet_length(u.more ->> 'correlationKey') not between 1 and 512 then 'a correlation key has 1 to 512 bytes'
    when octet_length(u.more ->> 'concurrency') not between 1 and 512 then 'the concurrency limit has at most 512 bytes'
    when (u.more ->> 'timeoutMs')::bigint not between 1 and 3155760000000 then 'a timeout is longer than 0 and at most 100 years'
    when u.more ? 'debounce' and u.parent_id is not null then 'debounce is for starts, and this run has a parent'
    when u.more ? 'debounce' then debounce_problem(u.more -> 'debounce', u.idempotency_key is not null or u.unique_key is not null,
      u.delay_ms is not null or u.at is not null)
    end as problem) p
  where u.more is not null and p.problem is not null limit 1;
  if found then
    raise exception '%: change the options of the start', v_problem using errcode = 'PW422';
  end if;
  perform require_tags(u.more -> 'tags') from unnest(v_options) u(more) where u.more ? 'tags';
  return v_options;
end $f$;

-- Says why a debounce is not valid; null: it is.
create or replace function debounce_problem(p_debounce jsonb, p_has_key boolean, p_has_time boolean) returns text language sql immutable as $$
  select case
    when p_has_key then 'a start takes debounce, or a unique or idempotency key, not both'
    when p_has_time then 'a start takes debounce, or delay or at, not both'
    when octet_length(p_debounce ->> 'key') between 1 and 512
      and (p_debounce ->> 'delayMs')::bigint between 0 and 3155760000000
      and coalesce((p_debounce ->> 'maxDelayMs')::bigint between (p_debounce ->> 'delayMs')::bigint and 3155760000000, true) then null
    else 'debounce needs a key of 1 to 512 bytes, a delay, and a maxDelay that is not shorter, if any' end
$$;

-- Raises on tags that the library would refuse.
create or replace function require_tags(p_tags jsonb) returns void language plpgsql as $f$
begin
  if jsonb_typeof(p_tags) is distinct from 'object' then
    raise exception 'tags must be an object of names and texts, not %', left(p_tags::text, 60) using errcode = 'PW422';
  end if;
  if (select count(*) from jsonb_object_keys(p_tags)) > 16 then
    raise exception 'a run has at most 16 tags: leave some out' using errcode = 'PW422';
  end if;
  perform require_name('tag', t.key, false) from jsonb_each(p_tags) t;
  if exists (select 1 from jsonb_each(p_tags) t where jsonb_typeof(t.value) <> 'string' or octet_length(t.value #>> '{}') > 256) then
    raise exception 'the value of a tag must be a text of at most 256 bytes, not %', left(p_tags::text, 200) using errcode = 'PW422';
  end if;
end $f$;
