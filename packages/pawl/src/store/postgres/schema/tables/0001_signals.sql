-- pawl: table; grant select, insert, update, delete
-- A run's inbox. A consumed signal with a dedup key stays as a row without payload.
create table signals (
  run_id      bigint      not null,
  seq         int         not null,
  name        text        not null,
  payload     jsonb,
  dedup_key   text collate "C",
  inserted_at timestamptz not null,
  consumed_at timestamptz,
  primary key (run_id, seq)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

-- a run's inbox, however many consumed signals with dedup keys it has
create index signals_inbox on signals (run_id, seq) where consumed_at is null;
-- redelivery of a signal is a no-op
create unique index signals_dedup on signals (run_id, dedup_key) where dedup_key is not null;
