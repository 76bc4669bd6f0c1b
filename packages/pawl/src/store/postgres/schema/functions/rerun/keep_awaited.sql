-- pawl: inner
-- Keeps in `awaits` the signals that resolved the wait of runs that fail or are cancelled, as
-- kept: [[seq, name, payload, inserted_at], …]. The end of a run clears its inbox, but a rerun at
-- the same step must see the same ctx.awaited. If they are more than 1 MiB together, `kept` stays
-- away, and a rerun must say where to begin. The caller has locked the runs and clears the inboxes
-- afterwards.
create or replace function keep_awaited(p_id bigint[]) returns void language plpgsql as $f$
declare
  c_bytes constant int := 1024 * 1024;
begin
  update runs r set awaits = r.awaits || jsonb_build_object('kept', v.kept)
  from (select u.id, coalesce(k.kept, '[]') as kept from unnest(p_id) u(id)
    cross join lateral (select t.awaits from runs t where t.id = u.id limit 1) t
    cross join lateral (
      select jsonb_agg(jsonb_build_array(s.seq, s.name, s.payload, s.inserted_at) order by s.seq) as kept,
        coalesce(sum(pg_column_size(s.payload)), 0) as bytes
      from signals s where s.run_id = u.id and s.consumed_at is null and is_awaited(t.awaits, s.seq, s.name, s.payload)) k
    where t.awaits ? 'names' and k.bytes <= c_bytes
    limit cardinality(p_id)) v
  where r.id = v.id;
end $f$;
