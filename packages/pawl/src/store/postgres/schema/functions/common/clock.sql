-- pawl: inner
-- The engine's clock: due times, backoff, limits, retention. A test replaces this one function to travel in time.
-- A function reads it once into a variable: a volatile call inside a WHERE is no index condition.
-- Liveness and leases never use it: they ask clock_timestamp().
create or replace function now() returns timestamptz language sql volatile parallel safe as $$ select clock_timestamp() $$;
