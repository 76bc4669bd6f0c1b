-- pawl: call
-- Counts the messages of one queue, or of each: visible (with blocked ones of a group), in flight
-- and delayed. Also answers how long the oldest visible one has waited, in milliseconds. At most
-- 10,000 queues, by name. Leaves out queues without messages, unless the caller named the queue.
-- Rides runs_claim (a skip scan over queues), runs_receipts and runs_blocked.
create or replace function queue_stats(p_queue text)
returns table (queue text, visible bigint, in_flight bigint, delayed bigint, oldest_ms double precision)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
begin
  return query
    with recursive known(queue) as (
        select coalesce(p_queue collate "C", (select r.queue from runs r
          where case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end order by r.queue limit 1))
      union all
        select (select r.queue from runs r
          where case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.queue > known.queue
          order by r.queue limit 1)
        from known where known.queue is not null and p_queue is null
    ), flying as materialized (
      select r.queue, count(*) as n from runs r
      where r.lease_expires_at >= '-infinity' and (p_queue is null or r.queue = p_queue) group by r.queue
    ), named as (
      select k.queue from known k
      where p_queue is not null or (select 1 from runs r where r.queue = k.queue and r.name = '~' || k.queue
        and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end limit 1) is not null
      union select f.queue from flying f
    )
    select n.queue::text,
      (select count(*) from runs r where r.queue = n.queue and r.name = '~' || n.queue and r.version = 1 and r.priority = 0
        and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.eligible_at <= v_now)
      + (select count(*) from runs r where (r.hold & 1) <> 0
        and r.partition_key >= group_key(n.queue, '') and r.partition_key < chr(1) || n.queue || ';'),
      coalesce((select f.n from flying f where f.queue = n.queue), 0),
      (select count(*) from runs r where r.queue = n.queue and r.name = '~' || n.queue and r.version = 1 and r.priority = 0
        and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.eligible_at > v_now),
      (select ms_until(v_now, r.eligible_at) from runs r where r.queue = n.queue and r.name = '~' || n.queue and r.version = 1 and r.priority = 0
        and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.eligible_at <= v_now
        order by r.eligible_at limit 1)::double precision
    from named n order by n.queue limit 10000;
end $f$;
