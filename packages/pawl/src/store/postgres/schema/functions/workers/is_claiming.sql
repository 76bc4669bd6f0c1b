-- pawl: inner
-- Whether a worker may claim a run of this queue and definition now: its lease has not passed, it
-- serves the definition, the database is not held, and queue and definition are not paused.
create or replace function is_claiming(p_worker text, p_queue text, p_name text, p_version int) returns boolean language plpgsql stable as $f$
begin
  return coalesce((select w.seen_at + w.lease > clock_timestamp() and p_name || '@' || p_version = any (w.serves)
      from workers w where w.id = p_worker), false)
    and not (select s.held from settings s where s.only_row)
    and not ((select has_pauses()) and is_paused(p_queue, p_name, p_version));
end $f$;
