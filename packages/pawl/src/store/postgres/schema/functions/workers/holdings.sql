-- pawl: call
-- Which of these claims are held still, for executions that are older than what a beat answers.
create or replace function held(p_id bigint[], p_claim_id bigint[]) returns setof bigint
language plpgsql stable as $f$
begin
  return query
    select l.id from unnest(p_id, p_claim_id) u(id, claim_id)
    cross join lateral (select r.id from runs r
      where r.id = u.id and r.claim_id = u.claim_id and r.locked_by is not null limit 1) l;
end $f$;

-- Everything that a worker holds, with the claim ids, as JSON. May take long while an old
-- transaction keeps the entries of ended claims: asked for rarely, apart from the beats, and
-- without the lock of the worker's row, which they need.
create or replace function holdings(p_worker text) returns text language plpgsql stable as $f$
begin
  return (select coalesce(jsonb_object_agg(r.id::text, r.claim_id::text), '{}') from runs r
    where r.locked_by = p_worker)::text;
end $f$;
