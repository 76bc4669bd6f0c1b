-- pawl: inner
-- The first id of a message. Messages (send) and runs share a table and a sequence; a message has
-- an id of 2^62 or more. The planner inlines this, so that it serves the predicates of indexes.
create or replace function first_message_id() returns bigint language sql immutable as $$ select 4611686018427387904 $$;

-- The partition key of a group of messages. It begins with a control character that start refuses, so
-- groups and runs never share a key.
create or replace function group_key(p_queue text, p_group text) returns text language sql immutable as $$
  select chr(1) || p_queue || ':' || p_group
$$;
