-- pawl: call
-- Deletes a subscription, of that pattern if one is given, and answers whether there was one.
create or replace function unsubscribe(p_id bigint, p_pattern text) returns boolean language plpgsql as $f$
begin
  perform require_durable_commit();
  delete from subscriptions s where s.id = p_id and (p_pattern is null or s.pattern = p_pattern);
  return found;
end $f$;

-- Up to p_limit subscriptions after an id, by id; of one pattern, or (null) all. Never their secrets.
create or replace function list_subscriptions(p_pattern text, p_after bigint, p_limit int)
returns table (id bigint, pattern text, target text, has_secret boolean, inserted_at text) language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select s.id, s.pattern, s.target::text, s.secret is not null, iso(s.inserted_at) from subscriptions s
    where s.id > p_after and (p_pattern is null or s.pattern = p_pattern) order by s.id limit p_limit;
end $f$;

-- Where a delivery goes, and with which secret it is signed; no row if the subscription was deleted.
create or replace function subscription_target(p_id bigint) returns table (target text, secret text) language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query select s.target::text, s.secret from subscriptions s where s.id = p_id;
end $f$;
