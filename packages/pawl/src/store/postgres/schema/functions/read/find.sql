-- pawl: call
-- The runs of one key, newest first, live ones before ended ones, up to p_limit and 16 MiB (see get):
--   p_idempotency_key  at most one per definition, whatever its status
--   p_unique_key       the run that holds it now
--   p_correlation_key  all runs that were started with it
-- Only of the definition p_name, unless that is null. Rides runs_idempotency, runs_unique or
-- extras_correlated.
create or replace function find(p_idempotency_key text, p_unique_key bytea, p_correlation_key text, p_name text, p_limit int)
returns setof run_record language plpgsql stable as $f$
declare
  v_ids bigint[];
begin
  if p_correlation_key is not null then
    v_ids := array(
      select l.run_id from unnest('{f,t}'::boolean[]) e(ended) cross join lateral (
        select x.run_id from extras x
        where x.correlation_key = p_correlation_key and x.ended = e.ended and (p_name is null or x.name = p_name)
        order by x.run_id desc limit p_limit) l
      order by e.ended, l.run_id desc limit p_limit);
  elsif p_unique_key is not null then
    v_ids := array(select r.id from runs r where r.unique_guard = p_unique_key and (p_name is null or r.name = p_name) limit p_limit);
  else
    v_ids := array(select r.id from runs r where r.idempotency_key = p_idempotency_key and r.id < first_message_id()
      and (p_name is null or r.name = p_name) order by r.id desc limit p_limit);
  end if;
  return query select g.* from get(v_ids) g;
end $f$;
