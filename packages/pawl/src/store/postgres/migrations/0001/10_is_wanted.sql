-- Whether an await (runs.awaits) wants a signal: one of `names`, whose payload contains `match`, or the part that `matches` asks of
-- this name. Inlined by the planner.
create function is_wanted(p_awaits jsonb, p_name text, p_payload jsonb) returns boolean language sql immutable as $$
  select p_awaits -> 'names' ? p_name and (p_awaits -> 'match' is null or p_payload @> (p_awaits -> 'match'))
    and (p_awaits -> 'matches' -> p_name is null or p_payload @> (p_awaits -> 'matches' -> p_name))
$$;
