-- pawl: inner
-- Whether an await (runs.awaits) wants a signal: one of `names`, whose payload contains `match`, or the part that `matches` asks of
-- this name. Inlined by the planner.
create or replace function is_wanted(p_awaits jsonb, p_name text, p_payload jsonb) returns boolean language sql immutable as $$
  select p_awaits -> 'names' ? p_name and (p_awaits -> 'match' is null or p_payload @> (p_awaits -> 'match'))
    and (p_awaits -> 'matches' -> p_name is null or p_payload @> (p_awaits -> 'matches' -> p_name))
$$;

-- What a claim makes of an await: the first one after the wait resolves it, and notes in `upto` how far the inbox goes at that moment,
-- in the very update that decides whether the wait has timed out. A signal that comes later stays in the inbox: neither this
-- claim nor a later one of the same wait (after a retry, a crash, a release) shows it as awaited. A step never sees a timeout and a
-- signal that came after it. Inlined by the planner.
create or replace function resolved(p_awaits jsonb, p_inbox_seq int) returns jsonb language sql stable as $$
  select case when p_awaits -> 'names' is not null and p_awaits -> 'upto' is null
    then p_awaits || jsonb_build_object('upto', p_inbox_seq) else p_awaits end
$$;

-- Whether a signal is one of those that a wait was resolved with: ctx.awaited. Inlined by the planner.
create or replace function is_awaited(p_awaits jsonb, p_seq int, p_name text, p_payload jsonb) returns boolean language sql immutable as $$
  select coalesce(is_wanted(p_awaits, p_name, p_payload) and p_seq <= coalesce((p_awaits ->> 'upto')::int, p_seq), false)
$$;
