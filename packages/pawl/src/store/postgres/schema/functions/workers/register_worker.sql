-- pawl: call
-- Registers a worker (register), the timeouts of its definitions, which are the defaults for starts by
-- name, and what their code declares, as JSON. p_timeout_ms is null for a definition without one.
create or replace function register_worker(
  p_worker text, p_lease_ms bigint, p_queues text[], p_info text,
  p_name text[], p_version int[], p_kind text[], p_queue text[], p_priority smallint[], p_retention_ms bigint[], p_timeout_ms bigint[],
  p_declared text[], p_owner text
) returns void language plpgsql as $f$
begin
  perform register(p_worker, p_lease_ms, p_queues, p_info, p_name, p_version, p_kind, p_queue, p_priority, p_retention_ms, p_owner);
  update definitions d set timeout = u.timeout_ms * interval '1 millisecond', declared = u.declared::jsonb
  from unnest(p_name, p_version, p_timeout_ms, p_declared) u(name, version, timeout_ms, declared)
  where d.name = u.name and d.version = u.version
    and (d.timeout is distinct from u.timeout_ms * interval '1 millisecond' or d.declared is distinct from u.declared::jsonb);
end $f$;
