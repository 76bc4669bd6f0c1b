-- pawl: inner
-- The hold of new runs, by position: 1 for due runs behind the first of their partition key, 32 for
-- due runs behind as many of their concurrency limit as it has slots (put_slots). So a claim never
-- walks over a large batch of one key: the runs ahead of them, in the same transaction, let them in
-- when they end. A run that no worker serves comes last if it was due more than a minute ago, as in
-- first_of_key.
create or replace function first_holds(p_runs new_run[], p_options jsonb[], p_worker text, p_now timestamptz) returns smallint[]
language plpgsql stable as $f$
begin
  return array(
    select case when k.is_behind then 1 when k.concurrency is not null and k.is_due
        and count(*) filter (where k.is_due and not k.is_behind)
          over (partition by k.concurrency, k.queue, k.name, k.version order by k.priority, k.at, k.o) > slots_of(k.concurrency)
      then 32 else 0 end
    from (
      select u.*, u.partition_key is not null and u.is_due
        and count(*) filter (where u.is_due and case when u.at > p_now - interval '1 minute' then true else is_served(u.name, u.version, u.queue) end)
          over (partition by u.partition_key order by u.priority, u.at, u.o rows between unbounded preceding and 1 preceding) > 0 as is_behind
      from (
        select r.partition_key, p_options[r.ordinality] ->> 'concurrency' as concurrency, r.queue, r.name, r.version,
          coalesce(r.priority, 0) as priority, coalesce(r.at, p_now) as at, r.ordinality as o,
          r.kind is not null and first_status(r.direct, p_worker) = 'runnable'
            and coalesce(r.at <= p_now, coalesce(r.delay_ms, 0) = 0) and (p_options[r.ordinality] ? 'debounce') is not true as is_due
        from unnest(p_runs) with ordinality r) u) k
    order by k.o)::smallint[];
end $f$;
