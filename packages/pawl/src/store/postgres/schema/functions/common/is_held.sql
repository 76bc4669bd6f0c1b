-- pawl: inner
-- Whether the database as a whole is held. In a held database nothing is claimed, handed over or
-- deleted. Runs still start, signals are still delivered, and both wait.
-- Every function that hands out claims checks this (claim, hand_over, start_runs, start_one, signal_one,
-- receive).
-- Bit 4 of runs.hold concerns one run and has nothing to do with this. held_copy means nothing in a
-- database of another name.

create or replace function is_held() returns boolean language sql stable as $$
  select s.held or coalesce(s.held_copy = current_database(), false) from settings s
$$;
