-- pawl: call
-- is_copy: it was migrated, or last adopted, elsewhere. Only what is known of both places is compared.
create or replace function database_state() returns table (identity uuid, is_held boolean, is_copy boolean) language plpgsql stable as $f$
declare
  v_place jsonb := place();
begin
  return query
    select s.identity, is_held(), exists (
      select 1 from jsonb_each_text(s.home) h where h.value <> v_place ->> h.key)
    from settings s;
end $f$;

-- Holds the database, or lets it go on; answers whether that changed anything. Claims that are held already stay: their workers
-- hear of it by a beat, and begin no further step.
create or replace function set_held(p_held boolean) returns boolean language plpgsql as $f$
begin
  perform require_read_committed();
  perform require_durable_commit();
  update settings s set held = p_held, held_copy = null where is_held() <> p_held or s.held_copy is not null;
  return found;
end $f$;

-- The copy of this name that is about to be made is to be held, from its first moment on; null: none.
create or replace function set_held_copy(p_name text) returns void language plpgsql as $f$
begin
  perform require_read_committed();
  update settings s set held_copy = p_name where s.held_copy is distinct from p_name;
end $f$;

-- Takes this for its own database from now on, whatever it is a copy of, and lets it go on. Answers what it was before.
create or replace function adopt() returns table (was_held boolean, was_copy boolean) language plpgsql as $f$
begin
  perform require_read_committed();
  perform require_durable_commit();
  perform 1 from settings s for update;
  select d.is_held, d.is_copy into was_held, was_copy from database_state() d;
  update settings s set held = false, held_copy = null, home = place(),
    identity = case when was_copy then gen_random_uuid() else s.identity end;
  return next;
end $f$;
