-- pawl: call
-- Brings forward up to p_limit runs that a limit had put off before it was changed (set_limit): in their order, each to when
-- the limit as it is now has tokens for it. Called by whoever changes a limit, for the first of them, and by recover for the
-- others. Rides runs_throttled, from where the last call stopped. Skips what is locked, and then goes over all once more.
-- Answers how many it has looked at, how many of those it moved, and their queues, as JSON.
create or replace function bring_forward(p_limit int) returns table (looked int, moved int, queues text) language plpgsql as $f$
declare
  v_limit limits;
  v_after text;
  v_at timestamptz;
  v_id bigint;
  v_found record;
  v_is_skipped boolean;
begin
  perform require_read_committed();
  looked := 0;
  moved := 0;
  queues := '[]';
  select l.* into v_limit from limits l where l.forward is not null order by l.name limit 1 for update skip locked;
  if not found then
    return next;
    return;
  end if;
  v_after := coalesce(v_limit.forward ->> 'limit', '');
  v_at := coalesce((v_limit.forward ->> 'at')::timestamptz, '-infinity');
  v_id := coalesce((v_limit.forward ->> 'id')::bigint, 0);
  -- `limit`, then `limit:key`: names of other limits may be between them
  select array_agg(f.id order by f.o) as ids, array_agg(f.need order by f.o) as needs, array_agg(f.rate_limit order by f.o) as rate_limits,
    array_agg(f.eligible_at order by f.o) as ats, count(*)::int as n into v_found
  from (
    select u.*, row_number() over () as o from (
      (select t.id, t.rate_limit, t.eligible_at, least(t.weight, v_limit.burst) as need from runs t
        where t.throttled and t.rate_limit = v_limit.name
          and (t.rate_limit, t.eligible_at, t.id) > (v_after, v_at, v_id)
        order by t.rate_limit, t.eligible_at, t.id limit p_limit)
      union all
      (select t.id, t.rate_limit, t.eligible_at, least(t.weight, v_limit.burst) from runs t
        where t.throttled and t.rate_limit >= v_limit.name || ':' and t.rate_limit < v_limit.name || ';'
          and (t.rate_limit, t.eligible_at, t.id) > (v_after, v_at, v_id)
        order by t.rate_limit, t.eligible_at, t.id limit p_limit)
      limit p_limit) u) f;
  looked := v_found.n;
  if looked > 0 then
    with placed as materialized (
      -- behind those of the same bucket that earlier calls have brought forward
      select u.id, later(v_limit.changed_at, (sum(u.need) over (partition by u.rate_limit order by u.o)
          + case when u.rate_limit = v_after then coalesce((v_limit.forward ->> 'need')::double precision, 0) else 0 end)
        / tokens_per_second(v_limit.allowed, v_limit.period)) as at
      from unnest(v_found.ids, v_found.needs, v_found.rate_limits) with ordinality u(id, need, rate_limit, o)
    ), late as materialized (
      select p.* from placed p cross join lateral (select r.eligible_at from runs r where r.id = p.id limit 1) r
      where r.eligible_at > p.at
    ), locked as materialized (
      select l.id, p.at from late p cross join lateral (select r.id from runs r
        where r.id = p.id and (r.throttled) is true limit 1 for no key update skip locked) l
    ), changed as (
      update runs r set eligible_at = least(r.eligible_at, v.at)
      from (select l.id, l.at from locked l limit p_limit) v
      where r.id = v.id and (r.throttled) is true
      returning r.queue)
    select coalesce(jsonb_agg(distinct c.queue), '[]')::text, count(*), count(*) < (select count(*) from late)
      into queues, moved, v_is_skipped from changed c;
  end if;
  v_is_skipped := coalesce(v_is_skipped, false) or v_limit.forward ? 'skipped';
  if looked = p_limit then
    v_limit.forward := jsonb_build_object('limit', v_found.rate_limits[looked], 'at', v_found.ats[looked], 'id', v_found.ids[looked]::text,
      'need', (select sum(u.need) from unnest(v_found.needs, v_found.rate_limits) u(need, rate_limit)
          where u.rate_limit = v_found.rate_limits[looked])
        + case when v_found.rate_limits[looked] = v_after then coalesce((v_limit.forward ->> 'need')::double precision, 0) else 0 end)
      || case when v_is_skipped then '{"skipped": true}' else '{}' end::jsonb;
  else
    v_limit.forward := case when v_is_skipped then '{}'::jsonb end;
  end if;
  update limits l set forward = v_limit.forward where l.name = v_limit.name;
  return next;
end $f$;
