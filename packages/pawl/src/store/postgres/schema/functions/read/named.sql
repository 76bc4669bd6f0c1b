-- pawl: call
-- The names and queues of the runs with these ids, and nothing else of them: what decides whether a token may see them.
create or replace function named(p_id bigint[]) returns table (id bigint, name text, queue text) language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select v.id, r.name, coalesce(r.queue, 'default')
    from unnest(p_id) v(id)
    cross join lateral (select t.name, t.queue from runs t where t.id = v.id and t.id < first_message_id() limit 1) r;
end $f$;
