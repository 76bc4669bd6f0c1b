-- pawl: inner
-- Runs whose definition no worker has ever registered: how many of each of the first 200 definitions, up to p_most. Rides
-- runs_unplaced.
create or replace function unplaced(p_most int) returns table (name text, version int, runs bigint)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    with recursive waiting(name, version, n) as (
        (select r.name, r.version, 1 from runs r where (r.hold & 10) <> 0 and (r.hold & 2) <> 0 order by r.name, r.version limit 1)
      union all
        select x.name, x.version, n + 1 from waiting cross join lateral (
          select r.name, r.version from runs r where (r.hold & 10) <> 0 and (r.hold & 2) <> 0 and (r.name, r.version) > (waiting.name, waiting.version)
          order by r.name, r.version limit 1) x
        where n < 200)
    select w.name, w.version, (select count(*) from (select 1 from runs r
      where (r.hold & 10) <> 0 and (r.hold & 2) <> 0 and r.name = w.name and r.version = w.version limit p_most) b)
    from waiting w;
end $f$;
