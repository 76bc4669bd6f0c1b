-- pawl: call
-- The runs among these ids that have ended or do not exist (status null), in the order given: what a waiting caller polls. Stops before
-- the answer is longer than 16 MiB (at least one run); a last row with id null then says that there are more.
create or replace function results(p_id bigint[]) returns table (id bigint, status run_status, result text, error text)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_bytes constant int := 16 * 1024 * 1024;
  c_growth constant int := 32;       -- a value that is not compressed is at most so many times as long as text
  v_ended bigint[];
  v_is_small boolean;
  v_id bigint;
  v_bytes bigint := 0;
  v_size bigint;
begin
  select array_agg(v.id), bool_and(coalesce(pg_column_compression(r.result), pg_column_compression(r.error)) is null)
    and sum(coalesce(pg_column_size(r.result), 0) + coalesce(pg_column_size(r.error), 0)) * c_growth <= c_bytes
  into v_ended, v_is_small
  from unnest(p_id) v(id)
  left join lateral (select t.status, t.result, t.error from runs t where t.id = v.id and t.id < first_message_id() limit 1) r on true
  where r.status is null or r.status in ('done', 'failed', 'cancelled');
  if v_ended is null then
    return;
  elsif v_is_small or cardinality(v_ended) = 1 then
    return query
      select v.id, r.status, r.result::text, r.error::text
      from unnest(v_ended) v(id)
      left join lateral (select t.status, t.result, t.error from runs t where t.id = v.id and t.id < first_message_id() limit 1) r on true;
    return;
  end if;
  -- one by one: only those that fit are read
  foreach v_id in array v_ended loop
    select v_id, t.status, t.result::text, t.error::text into id, status, result, error
      from (select) here left join runs t on t.id = v_id and t.id < first_message_id();
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
