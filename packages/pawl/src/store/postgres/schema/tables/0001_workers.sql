-- pawl: table; grant select, insert, update, delete
-- One row per worker: the lease of all its claims. A row is deleted only when no run names it.
create table workers (
  id            text collate "C"        primary key,
  lease         interval    not null,
  serves        text[]      not null,                    -- name@version
  queues        text[]      not null,
  info          jsonb       not null default '{}',
  registered_at timestamptz not null,
  seen_at       timestamptz not null,
  owner         text                                     -- the name of the token that registered it (require_owner); null: none did
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
