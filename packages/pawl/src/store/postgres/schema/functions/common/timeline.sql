-- pawl: inner
-- The timeline that this server writes: another one after a standby was promoted, or a backup restored up to some instant, and then
-- the last of what the old one had acknowledged may be missing. The same after a restart or a crash. Empty while it takes no writes.
create or replace function timeline() returns text language sql volatile as $$
  select case when pg_is_in_recovery() then '' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end
$$;

-- Servers that keep their log elsewhere do not tell, and lose nothing in a failover.
do $do$
begin
  perform timeline();
exception when others then
  create or replace function timeline() returns text language sql volatile as $$ select 'none' $$;

end $do$;
