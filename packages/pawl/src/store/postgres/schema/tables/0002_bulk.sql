-- pawl: table; grant select, insert, update, delete
-- Operations on all runs that match a filter, and the runs of each. Workers and servers work them
-- off in batches (work_bulk). Kept for 30 days after their end.
create table bulk_operations (
  id           bigint      generated always as identity primary key,
  status       text        not null,                     -- collecting, working, completed, stopped or failed
  action       text        not null,
  filter       jsonb       not null,
  options      jsonb       not null,
  by           jsonb       not null,                     -- {who, from}
  upto         bigint      not null,                     -- later runs do not belong to it
  cursor       bigint      not null default 0,           -- collecting has looked up to this run
  counted      bigint      not null,                     -- how many matched when it began
  matched      bigint      not null default 0,           -- how many it has collected
  done         bigint      not null default 0,
  skipped      bigint      not null default 0,
  failed       bigint      not null default 0,
  started_at   timestamptz not null,
  worked_at    timestamptz not null,                     -- the last batch
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
-- work_bulk: the runs that are left; those that were locked come last
create index bulk_pending on bulk_results (operation_id, tries, run_id) where outcome is null;
