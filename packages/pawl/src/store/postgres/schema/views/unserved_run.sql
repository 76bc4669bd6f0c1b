-- pawl: view; grant select
-- For people who query by hand: due runs that no live worker serves in their queue, whether any worker looks there or not,
-- and runs whose definition none has ever registered. Rides runs_claim, runs_blocked and runs_unplaced.
create or replace view unserved_run as
select d.name as workflow_name, d.version as workflow_version, sum(d.runs)::bigint as runs, min(d.due_since) as due_since
from (
  select w.name, w.version, w.queue, w.is_placed, count(*) as runs, min(w.eligible_at) as due_since from (
    select r.name, r.version, r.queue, r.eligible_at, true as is_placed from runs r where (r.id < first_message_id()) is true and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.eligible_at <= now()
    union all
    select r.name, r.version, r.queue, r.eligible_at, true from runs r where (r.id < first_message_id()) is true and (r.hold & 1) <> 0 and (r.hold & 14) = 0 and r.eligible_at <= now()
    union all
    select r.name, r.version, r.queue, r.eligible_at, false from runs r where (r.hold & 10) <> 0 and (r.hold & 2) <> 0) w
  group by w.name, w.version, w.queue, w.is_placed) d
where not d.is_placed or not is_served(d.name, d.version, d.queue)
group by d.name, d.version;
