-- The runs among these ids that have ended or do not exist (status null), in the order given: what a waiting caller polls. Stops before
-- the answer is longer than 16 MiB (at least one run); a last row with id null then says that there are more.
create function results(p_shard smallint, p_id bigint[]) returns table (id bigint, status run_status, result text, error text)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_bytes constant int := 16 * 1024 * 1024;
  v_bytes bigint := 0;
  v_size bigint;
begin
  -- the values are read one by one: only those that fit
  for id, status in
    select v.id, r.status
    from unnest(p_id) with ordinality v(id, o)
    left join lateral (select t.status from runs t where t.shard = p_shard and t.id = v.id limit 1) r on true
    where r.status is null or r.status in ('done', 'failed', 'cancelled')
  loop
    select t.result::text, t.error::text into result, error from runs t where t.shard = p_shard and t.id = results.id;
    v_size := coalesce(octet_length(result), 0) + coalesce(octet_length(error), 0);
    if v_bytes > 0 and v_bytes + v_size > c_bytes then
      id := null;
      status := null;
      result := null;
      error := null;
      return next;
      return;
    end if;
    v_bytes := v_bytes + v_size;
    return next;
  end loop;
end $f$;
