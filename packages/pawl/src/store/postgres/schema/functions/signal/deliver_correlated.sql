-- pawl: call
-- Puts a signal into the inbox of every live run with this correlation key (of one definition, if
-- p_name is given), in one transaction. Answers one row per run, like signal, with its id; a run
-- that has ended meanwhile has the verdict `ended`. Raises if there are more than 1,000 runs.
-- Finds the runs without a lock, and signal locks them in id order. A run that another transaction
-- is just starting gets nothing. Rides extras_correlated.
create or replace function deliver_correlated(
  p_key text, p_name text, p_signal text, p_payload text, p_dedup_key text, p_patient boolean
) returns table (run_id text, verdict text, run_name text, trace text, claimable text) language plpgsql as $f$
#variable_conflict use_column
declare
  c_runs constant int := 1000;
  v_ids bigint[];
begin
  v_ids := array(
    select x.run_id from extras x
    where x.correlation_key = p_key and x.ended = false and (p_name is null or x.name = p_name)
    order by x.run_id limit c_runs + 1);
  if cardinality(v_ids) > c_runs then
    raise exception 'more than % live runs have the correlation key %: name a definition, or list the runs and signal each by its id',
      c_runs, quote_literal(left(p_key, 60)) using errcode = 'PW422';
  end if;
  if v_ids = '{}' then
    return;
  end if;
  return query
    select v_ids[s.position]::text, s.verdict, s.run_name, s.trace, s.claimable
    from signal(v_ids, array_fill(p_signal, array[cardinality(v_ids)]), array_fill(p_payload, array[cardinality(v_ids)]),
      array_fill(p_dedup_key, array[cardinality(v_ids)]), p_patient) s;
end $f$;
