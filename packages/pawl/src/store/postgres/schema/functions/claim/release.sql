-- pawl: call; lock_timeout 100ms
-- Lets claims go without an outcome: the run is runnable again at once, its attempt unchanged. A cancelled run is
-- only let go. Guarded by the claim id; what is no longer claimed, or locked by somebody, is left alone (the reaper
-- finds it). Answers the ids released.
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
  return query select * from let_go(v_locked, 0);
end $f$;
