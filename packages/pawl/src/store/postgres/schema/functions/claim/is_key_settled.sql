-- pawl: inner
-- Whether a run can be claimed without a word about its unique key: it has none, or holds it. Not if it may find the key taken, nor if
-- it gave the key up when a signal, the end of a child, a release or the death of its worker made it enter its scope: such a run
-- still has its unique_scope, and the next claim tells of it (unique_lost) and takes that away. Inlined by the planner.
create or replace function is_key_settled(p_key bytea, p_guard bytea, p_scope run_status[]) returns boolean language sql immutable as $$
  select case when p_key is null then p_scope is null else p_guard is not null end
$$;
