-- pawl: call
-- Those of these claims that still hold, for executions that are older than the answer of a beat.
create or replace function still_held(p_id bigint[], p_claim_id bigint[]) returns setof bigint
language plpgsql stable as $f$
begin
  return query
    select l.id from unnest(p_id, p_claim_id) u(id, claim_id)
    cross join lateral (select r.id from runs r
      where r.id = u.id and r.claim_id = u.claim_id and r.locked_by is not null limit 1) l;
end $f$;

-- All claims of a worker, as JSON: run ids with claim ids. May take long while an old transaction
-- keeps the entries of ended claims. So workers call it rarely, apart from the beats, and it does
-- not lock the worker's row, which the beats need. Rides runs_holders.
create or replace function claims_of_worker(p_worker text) returns text language plpgsql stable as $f$
begin
  return (select coalesce(jsonb_object_agg(r.id::text, r.claim_id::text), '{}') from runs r
    where r.locked_by = p_worker)::text;
end $f$;
