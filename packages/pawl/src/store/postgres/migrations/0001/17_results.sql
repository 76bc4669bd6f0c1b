-- Of the runs with these ids, those that have ended or do not exist (status null): what a waiting caller polls.
create function results(p_shard smallint, p_id bigint[]) returns table (id bigint, status run_status, result text, error text)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select v.id, r.status, r.result::text, r.error::text
    from unnest(p_id) v(id)
    left join lateral (select t.status, t.result, t.error from runs t where t.shard = p_shard and t.id = v.id limit 1) r on true
    where r.status is null or r.status in ('done', 'failed', 'cancelled');
end $f$;
