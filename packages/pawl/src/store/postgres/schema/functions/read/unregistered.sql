-- pawl: call
-- Which of these names no worker has ever registered, each with up to 1,000 registered names of
-- about its length, as JSON: the client looks there for the name that was meant. Rides
-- definitions_pkey.
create or replace function unregistered(p_name text[]) returns table (name text, known text) language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select v.name, to_json(array(
      select distinct d.name from definitions d
      where length(d.name) between length(v.name) - 2 and length(v.name) + 2 and d.name not like 'pawl-%'
      order by d.name limit 1000))::text
    from (select distinct u.name from unnest(p_name) u(name)) v
    where not exists (select 1 from definitions d where d.name = v.name);
end $f$;
