-- pawl: inner
-- The whole journal as JSON [[name, kind, seq, attempt, child_id, due_ms, due_at, output, error], …], for claim; null if there is none, '' if
-- it is too big to come along with the run (then the worker reads it page by page).
create or replace function journal_inline(p_run_id bigint, p_budget int) returns text language plpgsql stable as $f$
declare
  v_now timestamptz := now();
  v_count bigint;
  v_bytes bigint;
  v_journal text;
begin
  select count(*), sum(s.bytes) into v_count, v_bytes
    from (select coalesce(case when pg_column_compression(t.output) is null then pg_column_size(t.output) else octet_length(t.output::text) end, 0)
        + coalesce(pg_column_size(t.error), 0) as bytes
      from steps t where t.run_id = p_run_id limit 1001) s;
  if v_count = 0 then
    return null;
  elsif v_count > 1000 or v_bytes > p_budget then
    return '';
  end if;
  select jsonb_agg(jsonb_build_array(t.name, t.kind, t.seq, t.attempt, t.child_id::text, ms_until(t.due_at, v_now), t.due_at, t.output,
      t.error))::text
    into v_journal from steps t where t.run_id = p_run_id;
  return case when octet_length(v_journal) > p_budget then '' else v_journal end;
end $f$;
