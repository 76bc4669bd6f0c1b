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
    select p.name, p.kind, p.seq, p.attempt, p.child_id, ms_until(p.due_at, v_now), iso(p.due_at),
      p.output, p.error, iso(p.started_at), iso(p.completed_at)
    from (
      select s.*, sum(coalesce(octet_length(s.output), 0) + coalesce(octet_length(s.error), 0)) over (order by s.name) as bytes, row_number() over (order by s.name) as n
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
  v_journal text;
begin
  select count(*), sum(s.bytes) into v_count, v_bytes
    from (select coalesce(case when pg_column_compression(t.output) is null then pg_column_size(t.output) else octet_length(t.output::text) end, 0)
        + coalesce(pg_column_size(t.error), 0) as bytes
      from steps t where t.shard = p_shard and t.run_id = p_run_id limit 1001) s;
  if v_count = 0 then
    return null;
  elsif v_count > 1000 or v_bytes > p_budget then
    return '';
  end if;
  select jsonb_agg(jsonb_build_array(t.name, t.kind, t.seq, t.attempt, t.child_id::text, ms_until(t.due_at, v_now), t.due_at, t.output,
      t.error))::text
    into v_journal from steps t where t.shard = p_shard and t.run_id = p_run_id;
  return case when octet_length(v_journal) > p_budget then '' else v_journal end;
end $f$;

-- A workflow that is suspended for one wait alone, which has just ended (by its time, or by a signal with p_output): recorded here and
-- now, so that its body goes on without another call. Of several, the body decides which came first. The caller has locked the run.
-- Answers whether there was such a wait.
create function end_lone_wait(p_shard smallint, p_run_id bigint, p_awaits jsonb, p_output jsonb, p_now timestamptz) returns boolean
language plpgsql as $f$
begin
  if jsonb_array_length(p_awaits -> 'steps') is distinct from 1 then
    return false;
  end if;
  update steps s set output = coalesce(p_output, 'null'), completed_at = p_now,
      seq = 1 + coalesce((select max(t.seq) from steps t where t.shard = p_shard and t.run_id = p_run_id), 0)
    where s.shard = p_shard and s.run_id = p_run_id and s.name = p_awaits -> 'steps' ->> 0 and (s.completed_at is null) is true
      and case when p_output is null then s.kind in ('sleep', 'wait') and s.due_at <= p_now else s.kind = 'wait' end;
  return found;
end $f$;
