-- pawl: inner
-- The first due run of a key, in the order (priority, eligible_at, id), or null. Held runs are not
-- in line. Paused runs are: they keep their place, and nobody passes them.
-- Runs that no live worker serves come last once they have been due for a minute: they must not
-- keep the key from the others. (Within the minute their worker may just be replaced.)
-- Rides runs_keyed: the first entry, if it is due and the key has runs of one definition only.
-- Otherwise a skip scan over definitions and priorities, so that it walks over neither runs that
-- are not due yet nor runs that no worker serves.
create or replace function first_of_key(p_key text, p_now timestamptz) returns bigint language plpgsql stable as $f$
declare
  v_first record;
begin
  select r.queue, r.name, r.version, r.id, r.eligible_at into v_first from runs r
    where r.partition_key = p_key
      and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 14) = 0 else false end
    order by r.queue, r.name, r.version, r.priority, r.eligible_at, r.id limit 1;
  if not found then
    return null;
  end if;
  if v_first.eligible_at <= p_now then
    perform 1 from runs r where r.partition_key = p_key
      and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 14) = 0 else false end
      and (r.queue, r.name, r.version) > (v_first.queue, v_first.name, v_first.version)
      order by r.queue, r.name, r.version limit 1;
    if not found then
      return v_first.id;
    end if;
  end if;
  return (
    with recursive line(queue, name, version) as (
        select v_first.queue, v_first.name, v_first.version
      union all
        select n.queue, n.name, n.version from line l cross join lateral (
          select r.queue, r.name, r.version from runs r where r.partition_key = p_key
            and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 14) = 0 else false end
            and (r.queue, r.name, r.version) > (l.queue, l.name, l.version)
          order by r.queue, r.name, r.version limit 1) n
    ), level(queue, name, version, priority) as (
        select l.queue, l.name, l.version, -32769 from line l
      union all
        select l.queue, l.name, l.version, n.priority::int from level l cross join lateral (
          select r.priority from runs r where r.partition_key = p_key
            and r.queue = l.queue and r.name = l.name and r.version = l.version and r.priority > l.priority
            and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 14) = 0 else false end
          order by r.priority limit 1) n
    ), head as materialized (
      select l.queue, l.name, l.version, due.* from level l cross join lateral (
        select r.priority, r.eligible_at, r.id from runs r where r.partition_key = p_key
          and r.queue = l.queue and r.name = l.name and r.version = l.version and r.priority = l.priority
          and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & 14) = 0 else false end
          and r.eligible_at <= p_now
        order by r.eligible_at, r.id limit 1) due
    ), definition as (
      select d.queue, d.name, d.version, count(*) over () = 1 or is_served(d.name, d.version, d.queue) as is_served
      from (select distinct h.queue, h.name, h.version from head h) d
    )
    select h.id from head h join definition d on d.queue = h.queue and d.name = h.name and d.version = h.version
    order by d.is_served or h.eligible_at > p_now - interval '1 minute' desc, h.priority, h.eligible_at, h.id limit 1);
end $f$;
