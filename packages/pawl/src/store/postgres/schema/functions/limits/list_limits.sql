-- pawl: call
-- All rate limits, by name, for releases that know only rates; put_limit keeps the number of limits
-- within 10,000.
create or replace function list_limits() returns table (name text, allowed double precision, period_ms double precision, burst double precision)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query select l.name, l.allowed, l.period_ms, l.burst from all_limits() l where l.allowed is not null;
end $f$;

-- All limits, by name.
create or replace function all_limits()
returns table (name text, allowed double precision, period_ms double precision, burst double precision, concurrent int)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select l.name, l.allowed, (extract(epoch from l.period) * 1000)::double precision, l.burst, l.concurrent::int
    from limits l order by l.name;
end $f$;
