-- pawl: inner
-- Whether an await (runs.awaits) wants a signal: its name is one of `names`, and its payload
-- contains `match` and the part of `matches` for this name. The planner inlines this.
create or replace function is_wanted(p_awaits jsonb, p_name text, p_payload jsonb) returns boolean language sql immutable as $$
  select p_awaits -> 'names' ? p_name and (p_awaits -> 'match' is null or p_payload @> (p_awaits -> 'match'))
    and (p_awaits -> 'matches' -> p_name is null or p_payload @> (p_awaits -> 'matches' -> p_name))
$$;

-- The await as its first claim leaves it: resolved, with `upto`, the last seq of the inbox at that
-- moment. The same update decides whether the wait has timed out. A later signal stays in the
-- inbox: neither this claim nor a later one of the same wait (after a retry, a crash, a release)
-- shows it as awaited. So a step never sees a timeout and a signal that came after it. The planner
-- inlines this.
create or replace function resolved(p_awaits jsonb, p_inbox_seq int) returns jsonb language sql stable as $$
  select case when p_awaits -> 'names' is not null and p_awaits -> 'upto' is null
    then p_awaits || jsonb_build_object('upto', p_inbox_seq) else p_awaits end
$$;

-- Whether a signal is one of those that resolved a wait: ctx.awaited. The planner inlines this.
create or replace function is_awaited(p_awaits jsonb, p_seq int, p_name text, p_payload jsonb) returns boolean language sql immutable as $$
  select coalesce(is_wanted(p_awaits, p_name, p_payload) and p_seq <= coalesce((p_awaits ->> 'upto')::int, p_seq), false)
$$;
