-- pawl: inner
-- The rare facts of runs (extras) and their tags. Runs that have any are marked (runs.has_extras), so that
-- nobody looks for those of the others.

-- How long each new run may take, by position: its option, or the default of its definition if it is
-- started by name.
create or replace function timeouts_of(p_runs new_run[], p_options jsonb[], p_known jsonb) returns interval[] language plpgsql stable as $f$
begin
  return array(
    select coalesce((p_options[u.ordinality] ->> 'timeoutMs')::bigint * interval '1 millisecond',
      case when u.kind is null then (p_known -> (u.name || coalesce('@' || u.version, '')) ->> 'timeout')::interval end)
    from unnest(p_runs) with ordinality u order by u.ordinality);
end $f$;

-- The marks of new runs, by position.
create or replace function marks_of(p_options jsonb[], p_timeout interval[]) returns boolean[] language plpgsql immutable as $f$
begin
  return array(
    select case when u.timeout is not null or u.more ?| '{correlationKey,debounce}' or u.more -> 'tags' <> '{}' then true end
    from unnest(p_timeout, p_options) with ordinality u(timeout, more, o) order by u.o);
end $f$;

-- Stores the tags and the other facts of new runs. p_ids are their ids by position; null: not
-- started. A deadline counts from when the run may begin. A run with a debounce key has its row in
-- extras already (start_debounced).
create or replace function add_extras(p_ids bigint[], p_options jsonb[], p_timeout interval[]) returns void language plpgsql as $f$
begin
  insert into tags (run_id, name, value)
  select u.id, t.key, t.value from unnest(p_ids, p_options) u(id, more)
  cross join lateral jsonb_each_text(u.more -> 'tags') t
  where u.id is not null and u.more ? 'tags';
  insert into extras (run_id, name, timeout, deadline_at, correlation_key)
  select r.id, r.name, u.timeout, r.eligible_at + u.timeout, u.more ->> 'correlationKey'
  from unnest(p_ids, p_options, p_timeout) u(id, more, timeout)
  cross join lateral (select t.id, t.name, t.eligible_at from runs t where t.id = u.id limit 1) r
  where (u.timeout is not null or u.more ? 'correlationKey') and (u.more ? 'debounce') is not true;
end $f$;

-- The end of marked runs: their debounce key is free, they have no deadline ahead and no pause.
create or replace function end_extras(p_id bigint[]) returns void language plpgsql as $f$
begin
  update extras x set ended = true, debounce_key = null, paused = null
  from (select u.id from unnest(p_id) u(id) limit cardinality(p_id)) v
  where x.run_id = v.id;
end $f$;

-- The tags of a run as a JSON object; null: it has none.
create or replace function tags_of(p_id bigint) returns jsonb language plpgsql stable as $f$
begin
  return (select jsonb_object_agg(t.name, t.value) from tags t where t.run_id = p_id);
end $f$;

-- The other facts of a run; nulls: it has none.
create or replace function extras_of(p_run runs) returns extras language plpgsql stable as $f$
declare
  v_extras extras;
begin
  if p_run.has_extras then
    select x.* into v_extras from extras x where x.run_id = p_run.id;
  end if;
  return v_extras;
end $f$;
