-- pawl: inner
-- The first p_limit runs with ids above p_after up to p_upto that match the filter of a bulk operation, which has
-- the members of runs.list. Raises on any other member: to pass over a filter would act on runs that
-- nobody meant. Rides the primary key.
create or replace function bulk_matches(p_filter jsonb, p_after bigint, p_upto bigint, p_limit int) returns setof bigint
language plpgsql stable as $f$
declare
  v_status run_status[] := (select array_agg(s.status::run_status) from jsonb_array_elements_text(p_filter -> 'phases') s(status));
  v_error text := p_filter ->> 'error';
  v_parent_id bigint := p_filter ->> 'parentId';
  v_unknown text := (select k.name from jsonb_object_keys(p_filter) k(name) where k.name <> all
    ('{name,version,phases,queue,kind,error,parentId,since,until,input,paused,tags,correlationKey,where}') limit 1);
begin
  if v_unknown is not null then
    raise exception 'bulk operations do not know the filter "%": leave it out', v_unknown using errcode = 'PW422';
  end if;
  if jsonb_array_length(p_filter -> 'phases') = 0 then
    return;
  end if;
  return query
    select r.id from runs r
    where r.id > p_after and r.id <= p_upto
      and (v_parent_id is null or r.parent_id = v_parent_id) is true
      and (not p_filter ? 'paused' or (r.hold & 16) <> 0) is true
      and (not p_filter ? 'correlationKey' or (r.has_extras and (select x.correlation_key from extras x where x.run_id = r.id) = p_filter ->> 'correlationKey')) is true
      and (not p_filter ? 'tags' or has_tags(r.id, p_filter -> 'tags')) is true
      and (v_error is null or (r.status = 'failed' and coalesce(r.error ->> 'code', r.error ->> 'name') = v_error)) is true
      and is_listed(r, p_filter ->> 'name', (p_filter ->> 'version')::int, v_status, p_filter ->> 'queue', p_filter ->> 'kind',
        (p_filter ->> 'since')::timestamptz, (p_filter ->> 'until')::timestamptz, p_filter -> 'input', null, null) is true
    order by r.id limit p_limit;
end $f$;
