-- A page of a run's inbox: the unconsumed signals after p_after up to p_upto, oldest first, at most 1,000 and about 1 MiB
-- (at least one). `matched`: the run's wait was resolved with it (is_awaited). p_upto is the run's inbox_seq as the caller knows it,
-- so that what arrives meanwhile stays out. Rides signals_inbox.
create function inbox(p_shard smallint, p_run_id bigint, p_after int, p_upto int)
returns table (seq int, name text, payload text, received_at text, matched boolean)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  v_awaits jsonb;
begin
  select r.awaits into v_awaits from runs r where r.shard = p_shard and r.id = p_run_id;
  return query
    select p.seq, p.name, p.payload, iso(p.inserted_at), p.matched
    from (
      select s.*, sum(octet_length(s.payload)) over (order by s.seq) as bytes, row_number() over (order by s.seq) as n
      from (
        select t.seq, t.name, t.payload::text as payload, t.inserted_at,
          is_awaited(v_awaits, t.seq, t.name, t.payload) as matched
        from signals t
        where t.shard = p_shard and t.run_id = p_run_id and t.consumed_at is null and t.seq > p_after and t.seq <= p_upto
        order by t.seq limit 1000) s) p
    where p.n = 1 or p.bytes <= 1048576
    order by p.seq;
end $f$;

-- The whole inbox as JSON [[seq, name, payload, received_at, matched], …], for claim; '' if it is too big to come along
-- with the run (then the worker reads it page by page).
create function inbox_inline(p_shard smallint, p_run_id bigint, p_awaits jsonb, p_budget int) returns text
language plpgsql stable as $f$
declare
  v_count bigint;
  v_bytes bigint;
  v_inbox text;
begin
  select count(*), sum(s.bytes) into v_count, v_bytes
    from (select pg_column_size(t.payload) as bytes from signals t
      where t.shard = p_shard and t.run_id = p_run_id and t.consumed_at is null order by t.seq limit 1001) s;
  if v_count = 0 then
    return null;
  elsif v_count > 1000 or v_bytes > p_budget then
    return '';
  end if;
  -- compressed values count as what they are when they are read
  select sum(case when pg_column_compression(t.payload) is null then pg_column_size(t.payload) else octet_length(t.payload::text) end)
    into v_bytes from signals t where t.shard = p_shard and t.run_id = p_run_id and t.consumed_at is null;
  if v_bytes > p_budget then
    return '';
  end if;
  select jsonb_agg(jsonb_build_array(t.seq, t.name, t.payload, iso(t.inserted_at),
      is_awaited(p_awaits, t.seq, t.name, t.payload)) order by t.seq)::text
    into v_inbox from signals t where t.shard = p_shard and t.run_id = p_run_id and t.consumed_at is null;
  return case when octet_length(v_inbox) > p_budget then '' else v_inbox end;
end $f$;

-- The names of the signals in a workflow's inbox as a JSON list, for claim; '' if there are too many to tell.
create function inbox_names(p_shard smallint, p_run_id bigint, p_budget int) returns text language plpgsql stable as $f$
declare
  v_names text[];
  v_text text;
begin
  select array_agg(s.name) into v_names from (select t.name from signals t
    where t.shard = p_shard and t.run_id = p_run_id and t.consumed_at is null limit 1001) s;
  v_text := case when cardinality(v_names) <= 1000 then to_jsonb(v_names)::text end;
  return case when v_names is null then null when octet_length(v_text) <= p_budget then v_text else '' end;
end $f$;

-- The seq of the last signal of each of these runs: for bodies of workflows that are alive and wait.
create function inbox_seqs(p_shard smallint, p_id bigint[]) returns table (id bigint, inbox_seq int) language plpgsql stable as $f$
begin
  return query
    select r.id, r.inbox_seq from unnest(p_id) u(id)
    cross join lateral (select t.id, t.inbox_seq from runs t where t.shard = p_shard and t.id = u.id limit 1) r;
end $f$;
