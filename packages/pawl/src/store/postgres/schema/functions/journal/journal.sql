-- pawl: call
-- A page of a workflow run's journal after a name, by name: at most 1,000 entries and about 1 MiB (at least one). `seq` is the
-- order in which completed steps are given to the body; a pending one has none, and due_ms until its due time, if it has
-- one. Rides the primary key.
create or replace function journal(p_run_id bigint, p_after text)
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
        from steps t where t.run_id = p_run_id and t.name > p_after
        order by t.name limit 1000) s) p
    where p.n = 1 or p.bytes <= 1048576
    order by p.name;
end $f$;
