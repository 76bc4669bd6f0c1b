-- pawl: call
-- Those of these runs that are paused: themselves, their queue or their definition. A worker asks
-- this before it begins a step long after the database last told it about the run.
create or replace function paused_among(p_id bigint[]) returns setof bigint language plpgsql stable as $f$
begin
  return query
    select r.id from unnest(p_id) u(id)
    cross join lateral (select t.id, t.hold, t.queue, t.name, t.version from runs t where t.id = u.id limit 1) r
    where (r.hold & 16) <> 0 or is_paused(r.queue, r.name, r.version);
end $f$;
