-- pawl: call
-- The state of this database. is_copy: it was migrated, or last adopted, at another location.
-- Compares only the parts of a location that both sides know.
create or replace function database_state() returns table (identity uuid, is_held boolean, is_copy boolean) language plpgsql stable as $f$
declare
  v_place jsonb := location();
begin
  return query
    select s.identity, is_held(), exists (
      select 1 from jsonb_each_text(s.home) h where h.value <> v_place ->> h.key)
    from settings s;
end $f$;

-- Holds the database or resumes it. Answers whether that changed anything. Existing claims stay:
-- their workers learn of the hold from a beat, and begin no further step.
create or replace function set_held(p_held boolean) returns boolean language plpgsql as $f$
begin
  perform require_read_committed();
  perform require_durable_commit();
  update settings s set held = p_held, held_copy = null where is_held() <> p_held or s.held_copy is not null;
  return found;
end $f$;

-- Names a copy that is about to be made: it is held from its first moment on. Null: no copy.
create or replace function set_held_copy(p_name text) returns void language plpgsql as $f$
begin
  perform require_read_committed();
  update settings s set held_copy = p_name where s.held_copy is distinct from p_name;
end $f$;

-- Makes this the schema's own database from now on, whatever it is a copy of, and resumes it.
-- Answers the state before. Locks the row of settings.
create or replace function adopt() returns table (was_held boolean, was_copy boolean) language plpgsql as $f$
begin
  perform require_read_committed();
  perform require_durable_commit();
  perform 1 from settings s for update;
  select d.is_held, d.is_copy into was_held, was_copy from database_state() d;
  update settings s set held = false, held_copy = null, home = location(),
    identity = case when was_copy then gen_random_uuid() else s.identity end;
  return next;
end $f$;
