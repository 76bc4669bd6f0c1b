-- pawl: call
-- Repair, part of recover: lets in runs of keys of concurrency limits that have a line and a free
-- slot. So it also admits runs after a limit was raised.
-- First it takes up to p_limit keys from slots_to_repair, whatever other keys have a line. Then it
-- takes up to p_limit keys after p_after by a skip scan over slots_line. Of those it also takes back slots
-- whose run nobody holds, should somebody have ended a claim by hand.
-- Answers how many keys it looked at, where it stopped (null: at the end), the queues that got work
-- as JSON, and whether more keys are left. Waits for no lock: a key that another transaction decides
-- about stays for later.
create or replace function repair_slots(p_after text, p_limit int)
returns table (looked int, last text, queues text, is_left boolean)
language plpgsql as $f$
declare
  v_now timestamptz := clock();
  v_left bigint[];
  v_keys text[];
  v_lost text[];
  v_claimable jsonb := '[]';
begin
  perform require_read_committed();
  -- reads more rows than it lets in: a key may appear many times, and locked keys stay
  select array_agg(l.id), array_agg(distinct l.concurrency) into v_left, v_keys from (
    select k.id, k.concurrency from slots_to_repair k order by k.id limit 10 * p_limit for update skip locked) l;
  looked := coalesce(cardinality(v_keys), 0);
  is_left := coalesce(cardinality(v_left), 0) = 10 * p_limit;
  if v_keys is not null then
    v_keys := array(select k.key from unnest(v_keys) k(key) where pg_try_advisory_xact_lock(slot_lock(k.key)) limit p_limit);
    is_left := is_left or cardinality(v_keys) = p_limit;
    delete from slots_to_repair k where k.id = any (v_left) and k.concurrency = any (v_keys);
    -- notes a key again if one of its first runs is locked
    v_claimable := admit(v_keys, v_now);
  end if;

  v_keys := array(
    with recursive lined(key, n) as (
        (select s.concurrency, 1 from slots s where s.concurrency > coalesce(p_after, '') and s.slot = 0
          order by s.concurrency limit 1)
      union all
        select (select s.concurrency from slots s where s.concurrency > lined.key and s.slot = 0
          order by s.concurrency limit 1), lined.n + 1
        from lined where lined.key is not null and lined.n < p_limit)
    select l.key from lined l where l.key is not null);
  looked := looked + cardinality(v_keys);
  last := case when cardinality(v_keys) = p_limit then v_keys[p_limit] end;
  v_lost := array(select k.key from unnest(v_keys) k(key) where lost_slots(k.key) <> '{}');
  if v_lost <> '{}' then
    v_lost := array(select k.key from unnest(v_lost) k(key) where pg_try_advisory_xact_lock(slot_lock(k.key)));
    perform leave_slots(lost_slots(k.key)) from unnest(v_lost) k(key);
  end if;
  -- two statements: in one, the planner would take the locks first, because that is cheaper
  v_keys := array(select k.key from unnest(v_keys) k(key) where free_slot_count(k.key) > 0);
  v_keys := array(select k.key from unnest(v_keys) k(key) where pg_try_advisory_xact_lock(slot_lock(k.key)));
  v_claimable := v_claimable || admit(v_keys, v_now);
  is_left := is_left or last is not null;
  queues := to_jsonb(array(select distinct e.value ->> 0 from jsonb_array_elements(v_claimable) e))::text;
  return next;
end $f$;
