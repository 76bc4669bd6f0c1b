-- pawl: call
create or replace function list_limits() returns table (name text, allowed double precision, period_ms double precision, burst double precision)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query select l.name, l.allowed, (extract(epoch from l.period) * 1000)::double precision, l.burst from limits l order by l.name;
end $f$;
