-- pawl: call
-- The keys of a concurrency limit that runs hold or wait for, after the key p_after ('' is the limit
-- without a key): how many slots are held and by which runs (the first 10, as JSON; those that the
-- prefixes of the caller allow), and how many runs wait (counted to 1,000).
-- Skip scans over slots_held and slots_line.
create or replace function list_slots(p_name text, p_after text, p_names text[], p_queues text[], p_limit int)
returns table (key text, held int, waiting int, holders text) language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_most constant int := 1000;
begin
  return query
    with recursive k(concurrency, n) as (
        select case when p_after is null then next_slot_key(p_name, null) else next_slot_key(p_name, concat_ws(':', p_name, nullif(p_after, ''))) end, 1
      union all
        select next_slot_key(p_name, k.concurrency), k.n + 1 from k where k.concurrency is not null and k.n < p_limit)
    select substr(k.concurrency, length(p_name) + 2),
      (select count(*)::int from (select 1 from slots s where s.concurrency = k.concurrency and s.slot > 0 limit c_most) h),
      (select count(*)::int from (select 1 from slots s where s.concurrency = k.concurrency and s.slot = 0 limit c_most) w),
      (select coalesce(jsonb_agg(run_named(h.run_id, p_names, p_queues)::jsonb order by h.slot) filter (where run_named(h.run_id, p_names, p_queues) is not null), '[]')::text
        from (select s.run_id, s.slot from slots s where s.concurrency = k.concurrency and s.slot > 0 order by s.slot limit 10) h)
    from k where k.concurrency is not null order by k.n;
end $f$;

-- The next key of this limit that is held or waited for, as in slots.concurrency.
create or replace function next_slot_key(p_name text, p_after text) returns text language plpgsql stable as $f$
declare
  v_end text := p_name || ';';     -- after all names with a colon
begin
  if p_after is null and (exists (select 1 from slots s where s.concurrency = p_name and s.slot > 0) or has_line(p_name)) then
    return p_name;
  end if;
  return least(
    (select s.concurrency from slots s where s.concurrency > greatest(p_after, p_name || ':') and s.concurrency < v_end
      and s.slot > 0 order by s.concurrency limit 1),
    (select s.concurrency from slots s where s.concurrency > greatest(p_after, p_name || ':') and s.concurrency < v_end
      and s.slot = 0 order by s.concurrency limit 1));
end $f$;
