-- pawl: call; lock_timeout 5s
-- The server has gone on to another timeline, perhaps without the last of what it had acknowledged on the one before. A claim that is
-- left is right about its run as of the last transition (its turn says which), but the body of a workflow knows what it has recorded and
-- heard since, and would go on without it: over a transaction that never happened, or waiting for a child that does not exist. So the claims on
-- workflows are let go, without counting an attempt, and their bodies are run again from the journal as it is now.
-- Called by whatever writes for a claim when it finds another timeline than settings.timeline, before it decides anything. Who comes
-- first does it, the others wait; under a lock_timeout of its own. Never in a transaction of a user (p_patient is false there), who could keep
-- everybody waiting: what is written for a workflow is busy until somebody else, at the latest the next recover, has done it.
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
  perform let_go(v_ids, 0);
  update settings set timeline = timeline();
end $f$;
