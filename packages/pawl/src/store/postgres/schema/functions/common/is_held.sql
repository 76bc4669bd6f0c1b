-- pawl: inner
-- The database as a whole: held or not, a copy or not. In a held one nothing is claimed, handed over or deleted; runs are started and
-- signals delivered, and wait. It is asked for by whatever hands out claims (claim, hand_over, start, start_one, signal_one, receive), so
-- that nobody passes by it.
-- Bit 4 of runs.hold concerns one run and has nothing to do with this. held_copy means nothing in a database of another name.

create or replace function is_held() returns boolean language sql stable as $$
  select s.held or coalesce(s.held_copy = current_database(), false) from settings s
$$;
