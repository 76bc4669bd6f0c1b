-- pawl: inner
-- Where this schema is: what differs in a copy of it. A copy within the server has another database oid, a restored dump another
-- table oid, another server another system identifier, if the server tells it. A renamed database is still the same; and so is, as far
-- as can be told, a standby that was promoted, or a restored snapshot of the whole server.
create or replace function place() returns jsonb language plpgsql stable as $f$
declare
  v_system text;
begin
  begin
    v_system := (select c.system_identifier::text from pg_control_system() c);
  exception when others then
    null;    -- managed servers may refuse it, each in its own way
  end;
  return jsonb_strip_nulls(jsonb_build_object('system', v_system,
    'database', (select d.oid::text from pg_database d where d.datname = current_database()),
    'settings', 'settings'::regclass::oid::text));
end $f$;
