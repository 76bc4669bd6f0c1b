-- pawl: inner
-- Due runs by queue, name and version, counted to p_most for each priority, with the oldest time. Skip
-- scans over runs_claim: at most 1,000 lines with 200 priorities each. For gauges and roll_up.
create or replace function due_lines(p_most int, p_now timestamptz)
returns table (queue text, name text, version int, runs numeric, since timestamptz) language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_lines constant int := 1000;
  c_priorities constant int := 200;
begin
  return query
    with recursive line(queue, name, version, n) as (
        (select r.queue, r.name, r.version, 1 from runs r where case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end
          order by r.queue, r.name, r.version limit 1)
      union all
        select x.queue, x.name, x.version, l.n + case when x.name < '~' then 1 else 0 end from line l cross join lateral (
          select r.queue, r.name, r.version from runs r where (r.queue, r.name, r.version) > (l.queue, l.name, l.version)
            and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end
          order by r.queue, r.name, r.version limit 1) x
        where l.n < c_lines
    ), level(queue, name, version, priority, n) as (
        select l.queue, l.name, l.version, -32769, 0 from line l where l.name < '~'  -- not messages
      union all
        select l.queue, l.name, l.version, x.priority::int, l.n + 1 from level l cross join lateral (
          select r.priority from runs r where r.queue = l.queue and r.name = l.name and r.version = l.version
            and r.priority > l.priority
            and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end
          order by r.priority limit 1) x
        where l.n < c_priorities
    )
    select l.queue, l.name, l.version, sum(d.runs), min(d.since) from level l cross join lateral (
      select count(*) as runs, min(b.eligible_at) as since from (
        select r.eligible_at from runs r
        where r.queue = l.queue and r.name = l.name and r.version = l.version and r.priority = l.priority
          and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.eligible_at <= p_now
        order by r.eligible_at limit p_most) b) d
    group by l.queue, l.name, l.version;
end $f$;
