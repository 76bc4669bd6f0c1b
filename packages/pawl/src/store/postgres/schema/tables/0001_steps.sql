-- pawl: table; grant select, insert, update, delete
-- A workflow run's journal. A row is pending until completed_at; seq is the order of delivery to the body.
create table steps (
  run_id       bigint      not null,
  name         text collate "C"        not null,
  kind         text        not null,
  seq          int,
  attempt      int         not null default 0,
  child_id     bigint,                                   -- the run that an invoke has started
  due_at       timestamptz,
  output       jsonb,
  error        jsonb,
  started_at   timestamptz not null,
  completed_at timestamptz,
  primary key (run_id, name)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
