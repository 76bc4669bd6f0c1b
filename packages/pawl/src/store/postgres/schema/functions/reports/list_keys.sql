-- pawl: call
-- Partition keys that a run holds or waits for, after the key p_after, in order: who holds the key, how
-- many runs it blocks (counted to 1,000) and which is the first in line, as JSON. A token with prefixes
-- sees keys of its own runs, and only those runs. Looks at no more than 1,000 keys, so a page may be
-- short; `next`, the same in each row, says where the next page begins (null: at the end). A page
-- without keys has one row without key.
-- Skip scans over runs_active_key and runs_blocked. Groups of messages are no keys of runs.
create or replace function list_keys(p_after text, p_names text[], p_queues text[], p_limit int)
returns table (key text, holder text, waiting int, first text, next text) language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_looks constant int := 1000;
  c_most constant int := 1000;
  v_now timestamptz := clock();
  v_key text := coalesce(p_after, chr(2));
  v_holder text;
  v_first text;
  v_waiting int;
  v_keys text[] := '{}';
  v_holders text[] := '{}';
  v_firsts text[] := '{}';
  v_counts int[] := '{}';
begin
  for v_look in 1 .. c_looks loop
    exit when cardinality(v_keys) = p_limit;
    v_key := least(
      (select r.partition_key from runs r where r.partition_key > v_key and r.partition_key is not null
        and (r.locked_by is not null or r.lease_expires_at is not null) order by r.partition_key limit 1),
      (select r.partition_key from runs r where r.partition_key > v_key and (r.hold & 1) <> 0 order by r.partition_key limit 1));
    exit when v_key is null;
    v_holder := (select run_named(r.id, p_names, p_queues) from (
      select t.id from runs t where t.partition_key = v_key and (t.locked_by is not null or t.lease_expires_at is not null) limit 1) r);
    v_first := (select run_named(r.id, p_names, p_queues) from (select first_of_key(v_key, v_now) as id) r
      where exists (select 1 from runs t where t.id = r.id and (t.hold & 1) <> 0));
    continue when v_holder is null and v_first is null and (p_names is not null or p_queues is not null);
    select count(*) into v_waiting from (select 1 from runs t where t.partition_key = v_key and (t.hold & 1) <> 0 limit c_most) w;
    v_keys := v_keys || v_key;
    v_holders := v_holders || v_holder;
    v_firsts := v_firsts || v_first;
    v_counts := v_counts || v_waiting;
  end loop;
  return query
    select u.key, u.holder, u.waiting, u.first, v_key from (select 1) one
    left join unnest(v_keys, v_holders, v_counts, v_firsts) with ordinality u(key, holder, waiting, first, o) on true
    order by u.o;
end $f$;

-- A run in short, as JSON; null if the prefixes of the caller do not allow it.
create or replace function run_named(p_id bigint, p_names text[], p_queues text[]) returns text language sql stable as $$
  select jsonb_build_object('runId', r.id::text, 'name', r.name, 'version', r.version, 'queue', r.queue, 'phase', r.status,
    'worker', r.locked_by)::text
  from runs r where r.id = p_id and begins_with(r.name, p_names) and begins_with(r.queue, p_queues)
$$;
