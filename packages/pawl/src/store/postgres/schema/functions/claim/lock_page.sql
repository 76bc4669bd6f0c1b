-- pawl: inner
-- Locks a page of runs or messages that the caller (claim, receive) has read unlocked. Locks those
-- of p_id that are still claimable, due and in the queue, in order, at most p_limit. Answers as
-- many as fit into p_room bytes, and at least one if the caller has found none yet (p_found).
-- `worn` are those that had p_max_attempts attempts (null: no bound).
-- Locks by primary key with SKIP LOCKED. A plain predicate on status would lure the planner to
-- runs_claim. The hidden one passes over runs that others have claimed or blocked since. To lock
-- such a run would delay its commit, or the transaction that frees its key.
-- The aggregates get the rows in the order of p_id: a lateral join keeps it, and none of them sorts
-- (a DISTINCT would sort for all).
create or replace function lock_page(
  p_id bigint[], p_queue text, p_limit int, p_room bigint, p_found int, p_max_attempts int, p_now timestamptz,
  out ids bigint[], out bytes bigint, out examined int, out is_full boolean, out keys text[], out worn bigint[],
  out is_limited boolean, out is_resumed boolean, out first_priority smallint, out first_at timestamptz
) language plpgsql as $f$
declare
  c_small constant int := 240 * 1024;    -- fits, even if it is 64 times as long as text
  v_sizes int[];
  v_fitting int;
begin
  -- compressed values are measured, others count with their stored size
  with locked as materialized (
    select l.* from unnest(p_id) c(id)
    cross join lateral (
      select r.id, r.queue, r.priority, r.eligible_at, r.status, r.hold, r.attempt, r.partition_key, r.rate_limit, r.concurrency, r.kind,
        case when pg_column_compression(coalesce(case when r.id < first_message_id() then r.state end, r.input)) is null
          then pg_column_size(coalesce(case when r.id < first_message_id() then r.state end, r.input))
          else octet_length(coalesce(case when r.id < first_message_id() then r.state end, r.input)::text) end as bytes
      from runs r where r.id = c.id and (r.status in ('runnable', 'awaiting_signal') and r.hold = 0) is true
      limit 1 for no key update skip locked) l
    where l.status in ('runnable', 'awaiting_signal') and l.queue = p_queue and l.hold = 0 and l.eligible_at <= p_now
    limit p_limit)
  select array_agg(l.id), array_agg(l.bytes), coalesce(sum(l.bytes), 0), count(*),
    array_agg(l.partition_key) filter (where l.partition_key is not null),
    array_agg(l.id) filter (where l.attempt >= p_max_attempts),
    coalesce(bool_or(l.rate_limit is not null or l.concurrency is not null), false), coalesce(bool_or(l.kind = 'workflow' and l.status = 'awaiting_signal'), false),
    min(l.priority), min(l.eligible_at)
  into ids, v_sizes, bytes, examined, keys, worn, is_limited, is_resumed, first_priority, first_at
  from locked l;
  if bytes > c_small then
    -- as text they may be much longer (1e308 is stored in a few bytes): measure them
    select array_agg(t.bytes order by u.o), sum(t.bytes) into v_sizes, bytes from unnest(ids) with ordinality u(id, o)
    cross join lateral (select octet_length(coalesce(case when r.id < first_message_id() then r.state end, r.input)::text) as bytes from runs r where r.id = u.id limit 1) t;
  end if;
  is_full := bytes > p_room and p_found + examined > 1;
  if is_full then
    select coalesce(max(f.o) filter (where f.upto <= p_room), 0) into v_fitting
      from (select u.o, sum(u.bytes) over (order by u.o) as upto from unnest(v_sizes) with ordinality u(bytes, o)) f;
    ids := nullif(ids[1 : greatest(v_fitting, case when p_found = 0 then 1 else 0 end)], '{}');
    bytes := (select sum(u.bytes) from unnest(v_sizes[1 : cardinality(ids)]) u(bytes));
  end if;
end $f$;
