-- pawl: inner
-- Whether a run can be claimed without regard to its unique key: it has none, or it holds the key.
-- Not settled is a run that may find its key taken. Nor is one that gave the key up when a signal,
-- the end of a child, a release or the death of its worker made it enter its scope. Such a run
-- still has its unique_scope; its next claim reports the loss (unique_lost) and clears the scope.
-- The planner inlines this.
create or replace function is_key_settled(p_key bytea, p_guard bytea, p_scope run_status[]) returns boolean language sql immutable as $$
  select case when p_key is null then p_scope is null else p_guard is not null end
$$;
