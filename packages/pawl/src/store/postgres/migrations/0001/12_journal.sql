-- A page of a workflow run's journal after a name, by name: at most 1,000 entries and about 1 MiB (at least one). `seq` is the
-- order in which completed steps are given to the body; a pending one has none, and due_ms until its due time, if it has
-- one. Rides the primary key.
create function journal(p_shard smallint, p_run_id bigint, p_after text)
returns table (name text, kind text, seq int, attempt int, child_id bigint, due_ms double precision, due_at text, output text, error text,
  started_at text, completed_at text)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  v_now timestamptz := now();
begin
  return query
    select p.name, p.kind, p.seq, p.attempt, p.child_id, extract(epoch from p.due_at - v_now)::double precision * 1000, iso(p.due_at),
      p.output, p.error, iso(p.started_at), iso(p.completed_at)
    from (
      select s.*, sum(coalesce(octet_length(s.output), 0)) over (order by s.name) as bytes, row_number() over (order by s.name) as n
      from (
        select t.name, t.kind, t.seq, t.attempt, t.child_id, t.due_at, t.output::text as output, t.error::text as error, t.started_at, t.completed_at
        from steps t where t.shard = p_shard and t.run_id = p_run_id and t.name > p_after
        order by t.name limit 1000) s) p
    where p.n = 1 or p.bytes <= 1048576
    order by p.name;
end $f$;

-- The whole journal as JSON [[name, kind, seq, attempt, child_id, due_ms, due_at, output, error], …], for claim; null if there is none, '' if
-- it is too big to come along with the run (then the worker reads it page by page).
create function journal_inline(p_shard smallint, p_run_id bigint, p_budget int) returns text language plpgsql stable as $f$
declare
  v_now timestamptz := now();
  v_count bigint;
  v_bytes bigint;
begin
  select count(*), sum(s.bytes) into v_count, v_bytes
    from (select coalesce(case when pg_column_compression(t.output) is null then pg_column_size(t.output) else octet_length(t.output::text) end, 0) as bytes
      from steps t where t.shard = p_shard and t.run_id = p_run_id limit 1001) s;
  if v_count = 0 then
    return null;
  elsif v_count > 1000 or v_bytes > p_budget then
    return '';
  end if;
  return (
    select jsonb_agg(jsonb_build_array(t.name, t.kind, t.seq, t.attempt, t.child_id::text, extract(epoch from t.due_at - v_now) * 1000, t.due_at, t.output,
      t.error))::text
    from steps t where t.shard = p_shard and t.run_id = p_run_id);
end $f$;
