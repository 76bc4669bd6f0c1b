-- pawl: call; lock_timeout 100ms
-- Ends claims without an outcome: the run is runnable again at once, its attempt unchanged. A
-- cancelled run only loses its holder. Answers the ids released.
-- Guarded by the claim id. Locks in id order with SKIP LOCKED. A run that is no longer claimed, or
-- that another transaction has locked, stays as it is; the reaper finds it.
create or replace function release(p_id bigint[], p_claim_id bigint[]) returns setof bigint
language plpgsql as $f$
declare
  v_locked bigint[];
begin
  perform require_read_committed();
  v_locked := array(
    select l.id from (select u.id, u.claim_id from unnest(p_id, p_claim_id) u(id, claim_id) order by u.id) v
    cross join lateral (select r.id from runs r
      where r.id = v.id and r.claim_id = v.claim_id and r.locked_by is not null
      limit 1 for no key update skip locked) l);
  return query select * from end_claims(v_locked, 0);
end $f$;
