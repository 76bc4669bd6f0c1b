-- pawl: call
-- The maintenance of message queues; recover and every waiting receiver call it. Makes messages
-- visible again whose visibility has ended, in their old place; their receipt counts until another
-- receives them. Lets in the first message of groups that have blocked messages and none in flight
-- (repair_keys). Deletes publications whose dedup keys have expired, unless the database is held.
-- At most p_limit of each.
-- p_marks is the `marks` of the last answer. `queues` got visible messages, as JSON. Never waits
-- for a lock.
-- Rides runs_receipts, from a little before the last look on: an old transaction keeps an entry
-- there for every message acked since. A look over everything, once a minute, finds rows that were
-- committed later than that.
create or replace function expire(p_limit int, p_marks text) returns table (expired int, queues text, marks text)
language plpgsql as $f$
declare
  c_late constant interval := '5 seconds';
  c_keys constant int := 200;
  v_now timestamptz := clock();
  v_clock timestamptz := clock_timestamp();
  v_marks jsonb := coalesce(p_marks::jsonb, '{}');
  v_looked timestamptz := timestamptz 'epoch' + (v_marks ->> 'looked')::bigint * interval '1 microsecond';
  v_after timestamptz := '-infinity';
  v_due bigint[];
  v_ids bigint[];
  v_ended record;
  v_keys text[];
  v_repaired record;
begin
  perform require_read_committed();
  if date_trunc('minute', v_looked) = date_trunc('minute', v_clock) then
    v_after := v_looked - c_late;
  end if;
  v_due := array(select r.id from runs r
    where r.lease_expires_at >= v_after and r.lease_expires_at <= v_clock
    order by r.lease_expires_at limit p_limit);
  v_ids := array(select l.id from (select u.id from unnest(v_due) u(id) order by u.id) v
    cross join lateral (select r.id from runs r
      where r.id = v.id and (r.lease_expires_at <= v_clock) is true
      limit 1 for no key update skip locked) l);
  v_ended := end_visibility(v_ids, v_now);
  expired := v_ended.ended;
  queues := v_ended.queues;
  -- the next call looks again for messages that were locked or beyond p_limit
  if v_ended.ended = cardinality(v_due) and cardinality(v_due) < p_limit then
    v_marks := v_marks || jsonb_build_object('looked', to_us(v_clock));
  else
    v_marks := v_marks - 'looked';
  end if;
  if expired = 0 then
    -- keys of groups begin with ~
    select k.last, k.queues into v_repaired from repair_keys(v_marks ->> 'key', c_keys) k;
    queues := v_repaired.queues;
    v_marks := v_marks || jsonb_build_object('key', v_repaired.last);
    if not is_held() then
      delete from publications p using (
        select q.topic, q.dedup_key from publications q where q.expires_at <= v_now
        order by q.expires_at limit p_limit for update skip locked) v
        where p.topic = v.topic and p.dedup_key = v.dedup_key;
    end if;
  end if;
  marks := v_marks::text;
  return next;
end $f$;
