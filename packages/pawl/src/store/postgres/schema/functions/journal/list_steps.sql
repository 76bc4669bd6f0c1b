-- pawl: call
-- A page of a workflow run's journal as people see it. First come completed steps after
-- p_after_seq, in the order in which the body got them. Then come pending steps after (p_after_at,
-- p_after_name), by their start.
-- The next page misses no step that was pending and has completed since: its seq is higher than all
-- before. Stops before the answer is longer than 16 MiB (at least one step); a last row with name
-- null then says that there are more. Rides the primary key.
create or replace function list_steps(p_run_id bigint, p_after_seq int, p_after_at timestamptz, p_after_name text)
returns table (name text, kind text, seq int, attempt int, child_id bigint, due_ms double precision, due_at text, output text, error text,
  started_at text, completed_at text)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_bytes constant int := 16 * 1024 * 1024;
  c_around constant int := 300;      -- bytes of an entry besides its values
  v_now timestamptz := clock();
  v_bytes bigint := 0;
  v_size bigint;
  v_key text;
begin
  for v_key in
    select s.name from steps s
    where s.run_id = p_run_id and case when s.seq is not null then s.seq > p_after_seq
      else p_after_at is null or (s.started_at, s.name) > (p_after_at, p_after_name) end
    order by s.seq nulls last, s.started_at, s.name
  loop
    -- one by one, so that it reads only those that fit
    select t.name, t.kind, t.seq, t.attempt, t.child_id, extract(epoch from t.due_at - v_now)::double precision * 1000, iso(t.due_at),
      t.output::text, t.error::text, iso(t.started_at), iso(t.completed_at)
    into name, kind, seq, attempt, child_id, due_ms, due_at, output, error, started_at, completed_at
    from steps t where t.run_id = p_run_id and t.name = v_key;
    v_size := c_around + octet_length(v_key) + coalesce(octet_length(output), 0) + coalesce(octet_length(error), 0);
    if v_bytes > 0 and v_bytes + v_size > c_bytes then
      name := null;
      output := null;
      error := null;
      return next;
      return;
    end if;
    v_bytes := v_bytes + v_size;
    return next;
  end loop;
end $f$;
