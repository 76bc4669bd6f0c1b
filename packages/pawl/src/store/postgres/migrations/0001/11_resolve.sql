-- The definition that a start by name means: the highest version with a live worker, else the highest registered.
create function resolve(p_name text) returns setof definitions language plpgsql stable as $f$
#variable_conflict use_column
declare v_now timestamptz := clock_timestamp();
begin
  return query
    select d.* from definitions d
    where d.name = p_name
    order by exists (select 1 from workers w
        where d.name || '@' || d.version = any (w.serves) and w.seen_at + w.lease > v_now) desc, d.version desc
    limit 1;
end $f$;
