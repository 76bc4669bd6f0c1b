-- pawl: inner
-- Whether a live worker serves this version of a definition in this queue, or (null) in any.
create or replace function is_served(p_name text, p_version int, p_queue text) returns boolean language plpgsql stable as $f$
declare v_now timestamptz := clock_timestamp();
begin
  return exists (select 1 from workers w where p_name || '@' || p_version = any (w.serves)
    and (p_queue is null or p_queue = any (w.queues)) and w.seen_at + w.lease > v_now);
end $f$;

-- The definition that a start by name means: this version, or (null) the highest with a live worker, else the highest registered.
create or replace function resolve(p_name text, p_version int) returns setof definitions language plpgsql stable as $f$
begin
  return query
    select d.* from definitions d
    where d.name = p_name and (p_version is null or d.version = p_version)
    order by is_served(d.name, d.version, null) desc, d.version desc
    limit 1;
end $f$;
