-- pawl: inner
-- The timeline that this server writes; empty while it takes no writes. It changes when a standby
-- is promoted or a backup is restored to a point in time. Then the last acknowledged writes may be
-- missing. A restart or a crash does not change it.
create or replace function timeline() returns text language sql volatile as $$
  select case when pg_is_in_recovery() then '' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end
$$;

-- Servers that keep their log elsewhere do not tell their timeline, and lose nothing in a failover.
do $do$
begin
  perform timeline();
exception when others then
  create or replace function timeline() returns text language sql volatile as $$ select 'none' $$;

end $do$;
