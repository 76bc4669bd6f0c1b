-- pawl: call; lock_timeout 100ms
-- Deletes messages that were dealt with, one per position of the arrays: those of that queue that still have that receipt, in flight,
-- or visible again and not received by another. Answers those it deleted as JSON, each as `id/receipt`, null if that is all of them; the
-- rest is gone, or has another receipt. The next of each group is let in; `queues` are those that got a visible message by that, as JSON.
-- Locks in id order in a statement of its own, then the keys of the groups.
create or replace function ack(p_queue text[], p_id bigint[], p_receipt bigint[]) returns table (acked text, queues text)
language plpgsql as $f$
declare
  v_now timestamptz := now();
  v_done text[];
  v_keys text[];
begin
  perform require_read_committed();
  perform require_durable_commit();
  perform 1 from (select distinct u.id from unnest(p_id) u(id) order by u.id) v
    cross join lateral (select 1 from runs r where r.id = v.id limit 1 for update) l;
  with gone as (
    delete from runs r
    using (select u.id, u.queue, u.receipt from unnest(p_id, p_queue, p_receipt) u(id, queue, receipt) limit cardinality(p_id)) v
    where r.id = v.id and (r.claim_id = v.receipt and r.queue = v.queue and r.kind = 'message') is true
    returning r.id, r.claim_id, r.partition_key)
  select array_agg(g.id || '/' || g.claim_id), array_agg(g.partition_key) filter (where g.partition_key is not null) into v_done, v_keys from gone g;
  if cardinality(v_done) is distinct from cardinality(p_id) then
    acked := coalesce(to_jsonb(v_done), '[]')::text;
  end if;
  queues := '[]';
  if v_keys is not null then
    queues := freed_queues((select f.claimable from free_keys(v_keys, v_now) f));
  end if;
  return next;
end $f$;
