-- pawl: call; lock_timeout 5s
-- Ends the claims on workflows after the server went on to another timeline, perhaps without the
-- last acknowledged writes of the one before. It counts no attempt; the bodies run again from the
-- journal as it is now.
-- A remaining claim is right about its run as of the last transition (its turn says which). But the
-- body of a workflow knows what it has recorded and heard since. It would go on over a transaction
-- that never happened, or wait for a child that does not exist.
-- Every function that writes for a claim calls this before it decides, if it finds another timeline
-- than settings.timeline. The first caller does the work, the others wait, under a lock_timeout of
-- its own. It is never called in a transaction of a user (p_patient is false there), which could
-- keep all others waiting. There, writes for a workflow are busy until another call has done it, at
-- the latest the next recover.
-- Locks the row of settings, then the runs in id order.
create or replace function begin_timeline() returns void language plpgsql as $f$
declare
  v_known text;
  v_ids bigint[];
begin
  select s.timeline into strict v_known from settings s for update;
  if v_known = timeline() then
    return;
  end if;
  v_ids := array(
    select l.id from (select h.id from (select r.id from runs r where r.locked_by is not null and (r.kind = 'workflow') is true offset 0) h
      order by h.id) v
    cross join lateral (select r.id from runs r where r.id = v.id and (r.locked_by is not null) is true
      limit 1 for no key update) l);
  perform end_claims(v_ids, 0);
  update settings set timeline = timeline();
end $f$;
