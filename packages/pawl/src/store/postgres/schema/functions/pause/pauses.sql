-- pawl: call
-- Pauses a queue or a definition: one version of it, or all (p_version is null). Answers whether
-- that is new. Writes nothing to the runs. Claims that exist stay; commit and record tell their
-- workers, so that no further step begins. A new pause is a line of the action log (p_actor, see
-- note_action).
create or replace function add_pause(p_scope text, p_name text, p_version int, p_by text, p_reason text, p_actor text default null) returns boolean
language plpgsql as $f$
begin
  perform require_read_committed();
  perform require_durable_commit();
  insert into pauses (scope, name, version, paused_by, reason, paused_at)
    values (p_scope, p_name, coalesce(p_version, 0), p_by, p_reason, clock())
    on conflict do nothing;
  if not found then
    return false;
  end if;
  perform note_pause(p_actor, p_scope, 'pause', p_name, p_version, p_reason);
  return true;
end $f$;

-- Resumes a queue, a version of a definition, or (p_version is null) a definition with all pauses
-- of its versions. Answers whether anything was paused, and whether it still is: a version by the
-- pause of its whole definition. Writes the action log like add_pause.
create or replace function remove_pauses(p_scope text, p_name text, p_version int, p_actor text default null) returns table (changed boolean, still boolean)
language plpgsql as $f$
begin
  perform require_read_committed();
  perform require_durable_commit();
  delete from pauses p where p.scope = p_scope and p.name = p_name and (p_version is null or p.version = p_version);
  changed := found;
  if changed then
    perform note_pause(p_actor, p_scope, 'resume', p_name, p_version, null);
  end if;
  still := exists (select 1 from pauses p where p.scope = p_scope and p.name = p_name and p.version = 0);
  return next;
end $f$;

-- The line of the action log about the pause of a queue or a definition.
create or replace function note_pause(p_actor text, p_scope text, p_verb text, p_name text, p_version int, p_reason text) returns void
language plpgsql as $f$
begin
  perform note_action(p_actor, p_scope || 's.' || p_verb, p_name, case when coalesce(p_version::text, p_reason) is not null
    then jsonb_build_object('version', p_version, 'reason', p_reason) end);
end $f$;

-- The paused queues and definitions, oldest first, at most 1,000.
create or replace function list_pauses() returns table (scope text, name text, version int, paused_by text, reason text, paused_at text)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select p.scope, p.name, nullif(p.version, 0), p.paused_by, p.reason, iso(p.paused_at) from pauses p
    order by p.paused_at, p.scope, p.name, p.version limit 1000;
end $f$;
