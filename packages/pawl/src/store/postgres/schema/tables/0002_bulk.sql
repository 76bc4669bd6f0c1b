-- pawl: table; grant select, insert, update, delete
-- Operations on all runs that match a filter, and what became of each run. Workers and servers work
-- them off in batches (work_bulk). Kept for 30 days after their end.
create table bulk_operations (
  id           bigint      generated always as identity primary key,
  status       text        not null,                     -- working, completed, stopped or failed
  action       text        not null,
  filter       jsonb       not null,
  options      jsonb       not null,
  actor        jsonb       not null,                     -- {who, from}
  upto         bigint      not null,                     -- later runs do not belong to it
  cursor       bigint      not null default 0,           -- it has looked up to this run
  counted      bigint      not null,                     -- how many matched when it began
  done         bigint      not null default 0,
  skipped      bigint      not null default 0,
  failed       bigint      not null default 0,
  started_at   timestamptz not null,
  worked_at    timestamptz,                              -- its last progress
  completed_at timestamptz,
  error        text                                      -- why it was given up
);
-- work_bulk: operations that have not ended
create index bulk_open on bulk_operations (id) where completed_at is null;

create table bulk_results (
  operation_id bigint      not null,
  run_id       bigint      not null,
  tries        smallint    not null default 0,           -- how often the run was locked
  outcome      text,                                     -- done, skipped or failed; null: pending
  reason       text,
  rerun_id     bigint,
  primary key (operation_id, run_id)
);
-- work_bulk: runs that were locked and are tried again at the end
create index bulk_pending on bulk_results (operation_id, tries, run_id) where outcome is null;
