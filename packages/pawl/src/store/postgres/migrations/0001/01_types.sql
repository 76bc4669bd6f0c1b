-- The phases of a run. Adding a value later is a migration of its own (an enum value cannot be used in the
-- transaction that adds it).
create type run_status as enum (
  'runnable', 'executing', 'awaiting_signal', 'awaiting_children', 'done', 'failed', 'cancelled');

-- A run's id is nextval << 6 | shard, so that the shard can be read off the id.
create sequence run_ids as bigint cache 1;

-- The engine's clock: due times, backoff, limits, retention. A test replaces this one function to travel in time.
-- A function reads it once into a variable: a volatile call inside a WHERE is no index condition.
-- Liveness and leases never use it: they ask clock_timestamp().
create function now() returns timestamptz language sql volatile parallel safe as $$ select clock_timestamp() $$;
