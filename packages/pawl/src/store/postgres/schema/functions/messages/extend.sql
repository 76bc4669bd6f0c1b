-- pawl: call; lock_timeout 100ms
-- Changes how long messages in flight stay invisible, from now on, one per position of the arrays; 0 gives them back at once, with
-- p_unreceived as if they had never been received. Only what is in flight under that receipt; answers like ack.
create or replace function extend(
  p_queue text[], p_id bigint[], p_receipt bigint[], p_visibility_ms bigint[], p_unreceived boolean
) returns table (extended text, queues text) language plpgsql as $f$
declare
  v_now timestamptz := now();
  v_clock timestamptz := clock_timestamp();
  v_done text[];
  v_keys text[];
  v_given text;
begin
  perform require_read_committed();
  perform require_durable_commit();
  perform 1 from (select distinct u.id from unnest(p_id) u(id) order by u.id) v
    cross join lateral (select 1 from runs r where r.id = v.id limit 1 for no key update) l;
  with changed as (
    update runs r set lease_expires_at = v.lease, status = v.status, claim_id = v.receipt, attempt = r.attempt - v.unreceived
    from (select u.id, u.queue, u.receipt as old,
        case when u.ms > 0 then u.receipt end as receipt,
        case when u.ms > 0 then v_clock + u.ms * interval '1 millisecond' end as lease,
        case when u.ms > 0 then 'executing'::run_status else 'runnable'::run_status end as status,
        case when p_unreceived then 1 else 0 end as unreceived
      from unnest(p_id, p_queue, p_receipt, p_visibility_ms) u(id, queue, receipt, ms) limit cardinality(p_id)) v
    where r.id = v.id and (r.claim_id = v.old and r.queue = v.queue and r.lease_expires_at is not null) is true
    returning r.id, v.old, r.queue, r.partition_key, r.lease_expires_at)
  select array_agg(c.id || '/' || c.old), array_agg(c.partition_key) filter (where c.partition_key is not null and c.lease_expires_at is null),
    coalesce(jsonb_agg(distinct c.queue) filter (where c.lease_expires_at is null), '[]')::text
  into v_done, v_keys, v_given from changed c;
  if cardinality(v_done) is distinct from cardinality(p_id) then
    extended := coalesce(to_jsonb(v_done), '[]')::text;
  end if;
  queues := v_given;
  if v_keys is not null then
    perform free_keys(v_keys, v_now);
  end if;
  return next;
end $f$;
