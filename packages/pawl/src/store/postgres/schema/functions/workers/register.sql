-- pawl: call
-- Registers a worker: its row (the lease of its claims, committed before its first claim) and the
-- definitions it serves, whose defaults starts by name take. place_runs places the runs that waited
-- for one of them. p_owner is the token that registers the worker through a server: only that token
-- may act for it (require_owner).
create or replace function register(
  p_worker text, p_lease_ms bigint, p_queues text[], p_info text,
  p_name text[], p_version int[], p_kind text[], p_queue text[], p_priority smallint[], p_retention_ms bigint[], p_owner text default null
) returns void language plpgsql as $f$
declare
  v_now timestamptz := clock_timestamp();
  v_clash record;
  v_last timestamptz;
begin
  perform require_read_committed();
  perform require_durable_commit();
  if p_lease_ms is null or p_lease_ms < 1000 then
    raise exception 'the lease of a worker must be at least 1000 ms, not %: a shorter one ends whenever the machine, the network or the database is busy for a moment',
      coalesce(p_lease_ms::text || ' ms', 'null') using errcode = 'PW422';
  end if;
  -- a copy that set_held_copy named, and that its maker could not hold itself
  update settings s set held = true, held_copy = null where s.held_copy = current_database();
  perform require_delay('lease', p_lease_ms * interval '1 millisecond');
  select d.name, d.version, d.kind, u.kind as given into v_clash
    from unnest(p_name, p_version, p_kind) u(name, version, kind)
    join definitions d on d.name = u.name and d.version = u.version and d.kind <> u.kind limit 1;
  if found then
    raise exception '%@% is registered as a %, not a %: give the changed definition a new version',
      v_clash.name, v_clash.version, v_clash.kind, v_clash.given using errcode = 'PW422';
  end if;
  select u.name, u.version into v_clash
    from unnest(p_name, p_version) u(name, version) group by u.name, u.version having count(*) > 1 limit 1;
  if found then
    raise exception '%@% is given twice: register each version of a definition once', v_clash.name, v_clash.version
      using errcode = 'PW422';
  end if;
  perform require_name('definition', u.name, false) from unnest(p_name) u(name) where starts_with(u.name, '~');
  insert into definitions as d (name, version, kind, queue, priority, retention, registered)
    select u.name, u.version, u.kind, u.queue, u.priority, u.retention_ms * interval '1 millisecond', v_now
    from unnest(p_name, p_version, p_kind, p_queue, p_priority, p_retention_ms) u(name, version, kind, queue, priority, retention_ms)
    order by u.name, u.version
  on conflict (name, version) do update
    set queue = excluded.queue, priority = excluded.priority, retention = excluded.retention, registered = excluded.registered;
  select max(w.seen_at) into v_last from workers w;
  insert into workers (id, lease, serves, queues, info, registered_at, seen_at, owner)
    values (p_worker, p_lease_ms * interval '1 millisecond',
      array(select u.name || '@' || u.version from unnest(p_name, p_version) u(name, version)), p_queues, p_info::jsonb, v_now, v_now, p_owner);
  if v_last is null or v_last < v_now - p_lease_ms * interval '1 millisecond' / 2 then
    update settings set beats_since = v_now;
  end if;
end $f$;
