-- pawl: inner
-- Messages (send) and runs share a table and a sequence. The id tells them apart: a message has 2^62
-- or more. Inlined by the planner, so that it serves the predicates of indexes.
create or replace function first_message_id() returns bigint language sql immutable as $$ select 4611686018427387904 $$;
