-- pawl: inner
-- The first id of a message. Messages (send) and runs share a table and a sequence; a message has
-- an id of 2^62 or more. The planner inlines this, so that it serves the predicates of indexes.
create or replace function first_message_id() returns bigint language sql immutable as $$ select 4611686018427387904 $$;
