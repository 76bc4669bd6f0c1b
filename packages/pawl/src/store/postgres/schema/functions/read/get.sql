-- pawl: call
-- The runs with these ids, in that order, as people see them. Stops before the answer is longer
-- than 16 MiB (at least one run); a last row with id null then says that there are more. Rides the
-- primary key.
create or replace function get(p_id bigint[]) returns setof run_record language plpgsql stable as $f$
declare
  c_bytes constant int := 16 * 1024 * 1024;
  c_growth constant int := 32;       -- an uncompressed value is at most 32 times as long as text
  v_id bigint;
  v_run run_record;
  v_bytes bigint := 0;
  v_size bigint;
begin
  if cardinality(p_id) <= 1 or (
      select coalesce(bool_and(coalesce(pg_column_compression(r.input), pg_column_compression(r.state), pg_column_compression(r.result),
          pg_column_compression(r.error)) is null), true)
        and coalesce(sum(pg_column_size(r.input) + coalesce(pg_column_size(r.state), 0) + coalesce(pg_column_size(r.result), 0)
          + coalesce(pg_column_size(r.error), 0)), 0) * c_growth <= c_bytes
      from unnest(p_id) v(id)
      cross join lateral (select t.input, t.state, t.result, t.error from runs t where t.id = v.id and t.id < first_message_id() limit 1) r) then
    return query
      select r.id, r.name, r.version, r.kind, r.status, r.step, r.attempt, coalesce(r.queue, 'default'), coalesce(r.priority, 0::smallint),
        r.input::text, r.state::text, r.result::text, r.error::text, r.parent_id, r.idempotency_key,
        iso(r.inserted_at), iso(r.completed_at), iso(nullif(r.eligible_at, 'infinity')), iso(r.expires_at), r.extra
      from unnest(p_id) v(id)
      cross join lateral (select t.*, run_extra(t) as extra from runs t where t.id = v.id and t.id < first_message_id() limit 1) r;
    return;
  end if;
  -- one by one, so that it reads only those that fit
  foreach v_id in array p_id loop
    select g.* into v_run from get(array[v_id]) g;
    continue when not found;
    v_size := octet_length(v_run.input) + coalesce(octet_length(v_run.state), 0) + coalesce(octet_length(v_run.result), 0)
      + coalesce(octet_length(v_run.error), 0);
    if v_bytes > 0 and v_bytes + v_size > c_bytes then
      return next null::run_record;
      return;
    end if;
    v_bytes := v_bytes + v_size;
    return next v_run;
  end loop;
end $f$;
