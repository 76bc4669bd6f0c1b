-- pawl: view; grant select
-- For people who query by hand.
create or replace view workflow_run as
select r.id as run_id, r.name as workflow_name, r.version as workflow_version,
  case when r.status = 'done' then 'completed'
       when r.status in ('failed', 'cancelled') then r.status::text
       else 'running' end as status,
  r.input, r.result as output, r.error, r.idempotency_key,
  extract(epoch from coalesce(r.retention, '30 days')) / 86400 as retention_days,
  r.inserted_at as started_at, r.completed_at
from runs r where r.id < first_message_id();

create or replace view workflow_step as
select s.run_id, s.name as step_name, s.output, s.started_at, s.completed_at from steps s;
