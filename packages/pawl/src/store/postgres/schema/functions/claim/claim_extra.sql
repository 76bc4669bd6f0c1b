-- pawl: inner
-- The member `extra` of a claimed_run: facts that few runs have, as a JSON object. take_claims asks
-- only for runs that have one.
--   originId  the first run of its chain of reruns
create or replace function claim_extra(p_run runs) returns text language sql stable as $$
  select jsonb_strip_nulls(jsonb_build_object('originId', (p_run).origin_id::text))::text
$$;
