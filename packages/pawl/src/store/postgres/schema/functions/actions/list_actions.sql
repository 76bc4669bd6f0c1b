-- pawl: call; custom plans
-- A page of the action log, newest first, before the id p_before. Every filter may be null. Rides
-- actions_target with a target, else the primary key.
create or replace function list_actions(
  p_who text, p_action text, p_target text, p_since timestamptz, p_until timestamptz, p_before bigint, p_limit int
) returns table (id bigint, at text, who text, source text, action text, target text, detail text)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select a.id, iso(a.at), a.who, a.source, a.action, a.target, a.detail::text from actions a
    where (p_who is null or a.who = p_who) and (p_action is null or a.action = p_action)
      and (p_target is null or a.target = p_target) and (p_since is null or a.at >= p_since)
      and (p_until is null or a.at < p_until) and (p_before is null or a.id < p_before)
    order by a.id desc limit p_limit;
end $f$;
