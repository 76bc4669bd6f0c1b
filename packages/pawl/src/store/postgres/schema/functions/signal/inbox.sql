-- pawl: call
-- A page of a run's inbox: the unconsumed signals after p_after up to p_upto, oldest first, at most 1,000 and about 1 MiB
-- (at least one). `matched`: the run's wait was resolved with it (is_awaited). p_upto is the run's inbox_seq as the caller knows it,
-- so that what arrives meanwhile stays out. Rides signals_inbox.
create or replace function inbox(p_run_id bigint, p_after int, p_upto int)
returns table (seq int, name text, payload text, received_at text, matched boolean)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  v_awaits jsonb;
begin
  select r.awaits into v_awaits from runs r where r.id = p_run_id;
  return query
    select p.seq, p.name, p.payload, iso(p.inserted_at), p.matched
    from (
      select s.*, sum(octet_length(s.payload)) over (order by s.seq) as bytes, row_number() over (order by s.seq) as n
      from (
        select t.seq, t.name, t.payload::text as payload, t.inserted_at,
          is_awaited(v_awaits, t.seq, t.name, t.payload) as matched
        from signals t
        where t.run_id = p_run_id and t.consumed_at is null and t.seq > p_after and t.seq <= p_upto
        order by t.seq limit 1000) s) p
    where p.n = 1 or p.bytes <= 1048576
    order by p.seq;
end $f$;

-- The seq of the last signal of each of these runs: for bodies of workflows that are alive and wait.
create or replace function inbox_seqs(p_id bigint[]) returns table (id bigint, inbox_seq int) language plpgsql stable as $f$
begin
  return query
    select r.id, r.inbox_seq from unnest(p_id) u(id)
    cross join lateral (select t.id, t.inbox_seq from runs t where t.id = u.id limit 1) r;
end $f$;
