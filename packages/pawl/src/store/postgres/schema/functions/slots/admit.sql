-- pawl: inner
-- Lets in the first runs in line for the free slots of these keys (first_in_lines): they are
-- claimable from then on. The caller has the advisory locks of the keys. A run that another
-- transaction has locked is left to the repair, and no other run is let in instead. At most 1,000
-- runs a call; the repair goes on with the others.
-- Answers the claimable runs it made, by queue: [[queue, priority, µs], …].
create or replace function admit(p_key text[], p_now timestamptz) returns jsonb language plpgsql as $f$
declare
  c_most constant int := 1000;
  v_keys text[];
  v_ids bigint[];
  v_left text[];
  v_looked int;
begin
  -- most keys have no line: then nobody needs to count their holders
  v_keys := array(select k.key from unnest(p_key) k(key) where has_line(k.key));
  if v_keys = '{}' then
    return '[]';
  end if;
  with first as materialized (
    select k.key, f.id from (select u.key, least(free_slot_count(u.key), c_most) as free from unnest(v_keys) u(key) offset 0) k
    cross join lateral first_in_lines(k.key, k.free) f
    where k.free > 0 and f.hold = 32 limit c_most)
  select count(*), array_agg(l.id) filter (where l.id is not null), array_agg(distinct f.key) filter (where l.id is null)
  into v_looked, v_ids, v_left
  from first f left join lateral (select r.id from runs r where r.id = f.id and r.hold = 32
    limit 1 for no key update skip locked) l on true;
  if v_looked = c_most then
    perform note_slots_to_repair(v_keys);
  elsif v_left is not null then
    perform note_slots_to_repair(v_left);
  end if;
  return case when v_ids is null then '[]' else let_in(v_ids, 32::smallint) end;
end $f$;

-- Lets in runs after runs of these keys have ended, lost their claim, or left the line. Takes the
-- advisory locks of the keys in one order, after all row locks and after those of partition keys. A
-- key that stays locked is left to the repair. Answers like admit.
create or replace function free_slots(p_key text[], p_now timestamptz) returns jsonb language plpgsql as $f$
declare
  v_locks record;
begin
  v_locks := lock_keys(p_key, chr(2));
  if v_locks.busy <> '{}' then
    perform note_slots_to_repair(v_locks.busy);
  end if;
  return case when v_locks.mine = '{}' then '[]' else admit(v_locks.mine, p_now) end;
end $f$;
