-- pawl: inner
-- Notes keys for the repair, which looks at them within a second.
create or replace function note_keys_to_repair(p_key text[]) returns void language plpgsql as $f$
begin
  insert into keys_to_repair (partition_key) select k.key from unnest(p_key) k(key);
end $f$;

-- Lets in the first due run of each key, if no run holds the key and that run is blocked. The
-- caller has the advisory locks of the keys. If another transaction has that run locked, it is left
-- to the repair, and no other run is let in instead.
-- Answers the claimable runs it made, by queue: [[queue, priority, µs], …].
create or replace function unblock_first(p_key text[], p_now timestamptz) returns jsonb language plpgsql as $f$
declare
  v_ids bigint[];
  v_left text[];
begin
  with first as materialized (
    select k.key, b.id from unnest(p_key) k(key)
    cross join lateral (select first_of_key(k.key, p_now) as id where not is_key_held(k.key)) f
    cross join lateral (select r.id from runs r where r.id = f.id and (r.hold = 1) is true limit 1) b)
  select array_agg(l.id) filter (where l.id is not null), array_agg(f.key) filter (where l.id is null) into v_ids, v_left
  from first f left join lateral (select r.id from runs r where r.id = f.id and r.hold = 1
    limit 1 for no key update skip locked) l on true;
  if v_left is not null then
    perform note_keys_to_repair(v_left);
  end if;
  return case when v_ids is null then '[]' else let_in(v_ids, 1::smallint) end;
end $f$;

-- Makes blocked runs claimable that the caller has locked: those that nothing but p_hold holds.
-- Answers them by queue: [[queue, priority, µs], …].
create or replace function let_in(p_id bigint[], p_hold smallint) returns jsonb language plpgsql as $f$
declare
  v_claimable jsonb;
begin
  with freed as (
    update runs r set hold = 0
    from (select u.id from unnest(p_id) u(id) limit cardinality(p_id)) v
    where r.id = v.id and (r.hold = p_hold) is true
    returning r.queue, r.priority, r.eligible_at)
  select jsonb_agg(g.entry) into v_claimable
  from (select jsonb_build_array(f.queue, min(f.priority), to_us(min(f.eligible_at))) as entry
    from freed f group by f.queue) g;
  return coalesce(v_claimable, '[]');
end $f$;

-- Lets in the next run of each key after runs of these keys have ended, lost their claim, or left
-- the line. A key that stays locked is left to the repair (lock_keys). Passes over null keys.
-- With p_worker and a claim id at the same position, the next run of the key that p_run has freed
-- goes straight to that worker, if the worker serves it (hand_over).
-- Answers the claimable runs made, by queue, and `handed`: [[position, run], …].
create or replace function free_keys(
  p_key text[], p_now timestamptz, p_worker text default null, p_claim_id bigint[] default null, p_run bigint[] default null,
  out claimable jsonb, out handed jsonb)
language plpgsql as $f$
declare
  c_bytes constant int := 8 * 1024 * 1024;    -- one call hands over this much, and one run more
  v_bytes bigint := 0;
  v_locks record;
  v_mine text[];
  v_run jsonb;
begin
  handed := '[]';
  claimable := '[]';
  v_locks := lock_keys(p_key, '');
  v_mine := v_locks.mine;
  if v_locks.busy <> '{}' then
    perform note_keys_to_repair(v_locks.busy);
  end if;
  if p_worker is not null then
    for i in 1 .. cardinality(p_key) loop
      exit when v_bytes > c_bytes;
      if p_claim_id[i] is not null and p_key[i] = any (v_mine) then
        v_run := hand_over(p_key[i], p_worker, p_claim_id[i], p_now, p_run[i]);
        if v_run is not null then
          handed := handed || jsonb_build_array(jsonb_build_array(i, v_run));
          v_bytes := v_bytes + pg_column_size(v_run);
        end if;
      end if;
    end loop;
  end if;
  if v_mine <> '{}' and jsonb_array_length(handed) < cardinality(v_mine) then
    claimable := unblock_first(v_mine, p_now);
  end if;
end $f$;
