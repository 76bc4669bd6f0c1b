-- pawl: call
-- A worker's heartbeat: one small update keeps all its claims. Answers whether its lease was still
-- running; if not, the worker must go on under a new id. Also answers the runs that it holds and
-- that were cancelled or have failed by their deadline, whether the database is held, the timeline
-- of the server, and the last breaking version of the schema. With p_since it also answers the claims from then on, each with its claim id.
-- The reaper judges only from settings.beats_since on. A beat after half a lease without any
-- worker's beat resets that: after an outage of the database every worker looks dead.
-- Locks the worker's row. Rides runs_holders, each question within a range that has few entries of
-- ended claims, however many an old transaction keeps: a slow beat would cost the lease.
create or replace function beat(p_worker text, p_since bigint)
returns table (alive boolean, cancelled text, held text, database_held boolean, server_timeline text, breaking int)
language plpgsql as $f$
declare
  v_now timestamptz;
  v_last timestamptz;
  v_lease interval;
begin
  perform require_read_committed();
  -- read the clock after the lock: a reap that judged this worker may have ended some of its claims
  perform 1 from workers w where w.id = p_worker for update;
  v_now := clock_timestamp();
  select max(w.seen_at) into v_last from workers w;
  update workers w set seen_at = v_now where w.id = p_worker and w.seen_at + w.lease > v_now returning w.lease into v_lease;
  alive := found;
  if alive then
    if v_last < v_now - v_lease / 2 then
      update settings set beats_since = v_now;
    end if;
    database_held := (select s.held from settings s where s.only_row);
    server_timeline := timeline();
    breaking := (select max(m.version) from migrations m where m.is_breaking);
    select jsonb_object_agg(e.id::text, e.claim_id::text) into cancelled from (
      select r.id, r.claim_id from runs r where r.locked_by = p_worker and r.status = 'cancelled'
      union all
      select r.id, r.claim_id from runs r where r.locked_by = p_worker and r.status = 'failed') e;
    if p_since is not null then
      select coalesce(jsonb_object_agg(h.id::text, h.claim_id::text), '{}') into held from (
        select r.id, r.claim_id from runs r
          where r.locked_by = p_worker and r.status = 'executing' and r.claim_id >= p_since
        union all
        select r.id, r.claim_id from runs r
          where r.locked_by = p_worker and r.status = 'cancelled' and r.claim_id >= p_since
        union all
        select r.id, r.claim_id from runs r
          where r.locked_by = p_worker and r.status = 'failed' and r.claim_id >= p_since) h;
    end if;
  end if;
  return next;
end $f$;
