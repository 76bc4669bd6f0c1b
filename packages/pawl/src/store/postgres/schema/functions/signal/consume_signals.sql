-- pawl: inner
-- The end of signals, for commit and cancel: a consumed one is gone, or, with a dedup key, stays without its payload, so that
-- a redelivery is still a no-op.
create or replace function consume_signals(p_run_id bigint[], p_seq int[], p_now timestamptz) returns void
language plpgsql as $f$
begin
  delete from signals s
  using (select u.run_id, u.seq from unnest(p_run_id, p_seq) u(run_id, seq) limit cardinality(p_run_id)) v
  where s.run_id = v.run_id and s.seq = v.seq and (s.dedup_key is null) is true;
  update signals s set payload = null, consumed_at = p_now
  from (select u.run_id, u.seq from unnest(p_run_id, p_seq) u(run_id, seq) limit cardinality(p_run_id)) v
  where s.run_id = v.run_id and s.seq = v.seq and (s.consumed_at is null) is true;
end $f$;

-- The same for whole inboxes.
create or replace function clear_inboxes(p_run_id bigint[], p_now timestamptz) returns void language plpgsql as $f$
begin
  delete from signals s using (select u.run_id from unnest(p_run_id) u(run_id) limit cardinality(p_run_id)) v
  where s.run_id = v.run_id and (s.dedup_key is null) is true;
  update signals s set payload = null, consumed_at = p_now
  from (select u.run_id from unnest(p_run_id) u(run_id) limit cardinality(p_run_id)) v
  where s.run_id = v.run_id and s.consumed_at is null;
end $f$;
