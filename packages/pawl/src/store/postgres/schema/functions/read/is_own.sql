-- pawl: inner
-- Whether a token with these prefixes of names and queues (null: all) may see a run. The planner
-- inlines this, so that it vanishes for a token without prefixes.
create or replace function is_own(p_name text, p_queue text, p_names text[], p_queues text[]) returns boolean
language sql immutable as $$
  select (p_names is null or p_name ^@ any (p_names)) and (p_queues is null or p_queue ^@ any (p_queues))
$$;

-- The prefixes of a kind ("names", "queues") in the later filters of list; null: none.
create or replace function own_prefixes(p_more jsonb, p_kind text) returns text[] language plpgsql immutable as $f$
begin
  return case when p_more ? p_kind then array(select jsonb_array_elements_text(p_more -> p_kind)) end;
end $f$;
