-- pawl: inner
-- Of the runs that free_keys or unblock_first let in, the queues, as JSON.
create or replace function freed_queues(p_claimable jsonb) returns text language sql immutable as $$
  select coalesce(jsonb_agg(distinct e.value -> 0), '[]')::text from jsonb_array_elements(p_claimable) e
$$;
