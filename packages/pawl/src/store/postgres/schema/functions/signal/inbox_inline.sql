-- pawl: inner
-- The whole inbox as JSON [[seq, name, payload, received_at, matched], …], for claim; '' if it is too big to come along
-- with the run (then the worker reads it page by page).
create or replace function inbox_inline(p_run_id bigint, p_awaits jsonb, p_budget int) returns text
language plpgsql stable as $f$
declare
  v_count bigint;
  v_bytes bigint;
  v_inbox text;
begin
  select count(*), sum(s.bytes) into v_count, v_bytes
    from (select pg_column_size(t.payload) as bytes from signals t
      where t.run_id = p_run_id and t.consumed_at is null order by t.seq limit 1001) s;
  if v_count = 0 then
    return null;
  elsif v_count > 1000 or v_bytes > p_budget then
    return '';
  end if;
  -- compressed values count as what they are when they are read
  select sum(case when pg_column_compression(t.payload) is null then pg_column_size(t.payload) else octet_length(t.payload::text) end)
    into v_bytes from signals t where t.run_id = p_run_id and t.consumed_at is null;
  if v_bytes > p_budget then
    return '';
  end if;
  select jsonb_agg(jsonb_build_array(t.seq, t.name, t.payload, iso(t.inserted_at),
      is_awaited(p_awaits, t.seq, t.name, t.payload)) order by t.seq)::text
    into v_inbox from signals t where t.run_id = p_run_id and t.consumed_at is null;
  return case when octet_length(v_inbox) > p_budget then '' else v_inbox end;
end $f$;

-- The names of the signals in a workflow's inbox as a JSON list, for claim; '' if there are too many to tell.
create or replace function inbox_names(p_run_id bigint, p_budget int) returns text language plpgsql stable as $f$
declare
  v_names text[];
  v_text text;
begin
  select array_agg(s.name) into v_names from (select t.name from signals t
    where t.run_id = p_run_id and t.consumed_at is null limit 1001) s;
  v_text := case when cardinality(v_names) <= 1000 then to_jsonb(v_names)::text end;
  return case when v_names is null then null when octet_length(v_text) <= p_budget then v_text else '' end;
end $f$;
