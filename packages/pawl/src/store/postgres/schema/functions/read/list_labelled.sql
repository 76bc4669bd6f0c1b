-- pawl: inner
-- The newest runs, up to p_limit (null: all), that have all tags or the correlation key of p_more
-- and pass the other filters, for list and count_listed. Ids are in the order of inserted_at, so
-- the id alone says where a page begins.
-- Rides tags_listing from the tag with the fewest runs on, or extras_correlated.
create or replace function list_labelled(
  p_name text, p_version int, p_status run_status[], p_queue text, p_kind text, p_error text, p_parent_id bigint,
  p_since timestamptz, p_until timestamptz, p_before_id bigint, p_input jsonb, p_limit int, p_more jsonb
) returns bigint[] language plpgsql stable as $f$
declare
  v_before bigint := coalesce(p_before_id, first_message_id());
  v_tags jsonb := coalesce(p_more -> 'tags', '{}');
  v_own text[] := own_prefixes(p_more, 'names');
  v_queues text[] := own_prefixes(p_more, 'queues');
  v_tag record;
begin
  if p_more ? 'correlationKey' then
    return array(
      select l.id from unnest('{f,t}'::boolean[]) e(ended) cross join lateral (
        select r.id from extras x
        cross join lateral (select u.* from runs u where u.id = x.run_id limit 1) r
        where x.correlation_key = p_more ->> 'correlationKey' and x.ended = e.ended and x.run_id < v_before
          and (v_tags = '{}' or has_tags(r.id, v_tags)) and (not p_more ? 'paused' or (r.hold & 16) <> 0)
          and (p_parent_id is null or r.parent_id = p_parent_id) and (p_error is null or failed_with(r.status, r.error, p_error))
          and is_listed(r, p_name, p_version, p_status, p_queue, p_kind, p_since, p_until, p_input, null, null) and is_own(r.name, r.queue, v_own, v_queues)
        order by x.run_id desc limit p_limit) l
      order by l.id desc limit p_limit);
  end if;
  select t.name, t.value into v_tag from jsonb_each_text(v_tags) t(name, value)
    order by (select count(*) from (select 1 from tags u where u.name = t.name and u.value = t.value limit 1000) few) limit 1;
  return array(
    select r.id from tags t
    cross join lateral (select u.* from runs u where u.id = t.run_id limit 1) r
    where t.name = v_tag.name and t.value = v_tag.value and t.run_id < v_before
      and has_tags(t.run_id, v_tags - v_tag.name) and (not p_more ? 'paused' or (r.hold & 16) <> 0)
      and (p_parent_id is null or r.parent_id = p_parent_id) and (p_error is null or failed_with(r.status, r.error, p_error))
      and is_listed(r, p_name, p_version, p_status, p_queue, p_kind, p_since, p_until, p_input, null, null) and is_own(r.name, r.queue, v_own, v_queues)
    order by t.run_id desc limit p_limit);
end $f$;

-- Whether a run has all of these tags.
create or replace function has_tags(p_id bigint, p_tags jsonb) returns boolean language plpgsql stable as $f$
begin
  return p_tags = '{}' or not exists (select 1 from jsonb_each_text(p_tags) t(name, value)
    where not exists (select 1 from tags u where u.run_id = p_id and u.name = t.name and u.value = t.value));
end $f$;

-- Whether a run failed with this error code, or with this name of an error without a code.
create or replace function failed_with(p_status run_status, p_error jsonb, p_code text) returns boolean language sql immutable as $$
  select p_status = 'failed' and coalesce(p_error ->> 'code', p_error ->> 'name') = p_code
$$;

-- Whether p_more filters by tags or a correlation key.
create or replace function is_labelled(p_more jsonb) returns boolean language sql immutable as $$
  select coalesce(p_more ? 'correlationKey' or p_more -> 'tags' <> '{}', false)
$$;
