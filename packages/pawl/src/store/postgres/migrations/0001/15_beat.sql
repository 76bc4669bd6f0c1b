-- A worker's heartbeat: one small update holds all its claims. Answers whether its lease still ran (if not, the
-- worker must go on under a new id), the runs it holds that were cancelled, and, when asked, all it holds, each with its
-- claim id. The beat that ends a gap of half a lease without any worker's beat starts the count anew from which the
-- reaper may judge: after an outage of the database everybody looks dead.
create function beat(p_shard smallint, p_worker text, p_held boolean)
returns table (alive boolean, cancelled text, held text)
language plpgsql as $f$
declare
  v_now timestamptz;
  v_last timestamptz;
  v_lease interval;
begin
  perform require_read_committed();
  -- the clock is read when no reap is judging this worker any more: it may have ended some of its claims
  perform 1 from workers w where w.id = p_worker for update;
  v_now := clock_timestamp();
  select max(w.seen_at) into v_last from workers w;
  update workers w set seen_at = v_now where w.id = p_worker and w.seen_at + w.lease > v_now returning w.lease into v_lease;
  alive := found;
  if alive then
    if v_last < v_now - v_lease / 2 then
      update settings set beats_since = v_now;
    end if;
    select jsonb_object_agg(r.id::text, r.claim_id::text) into cancelled from runs r
      where r.shard = p_shard and r.locked_by = p_worker and (r.status = 'cancelled') is true;
    if p_held then
      select coalesce(jsonb_object_agg(r.id::text, r.claim_id::text), '{}') into held from runs r
        where r.shard = p_shard and r.locked_by = p_worker;
    end if;
  end if;
  return next;
end $f$;
