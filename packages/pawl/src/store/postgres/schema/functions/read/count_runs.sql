-- pawl: call; custom plans
-- How many runs there are of each name, by what they look like from outside; registered names that have none too, except the engine's own
-- (pawl-…). Up to p_limit names in their order. Reads every run once: for people who look, not for loops.
create or replace function count_runs(p_limit int)
returns table (name text, running bigint, completed bigint, failed bigint, cancelled bigint)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select c.name, sum(c.running)::bigint, sum(c.completed)::bigint, sum(c.failed)::bigint, sum(c.cancelled)::bigint
    from (
      select r.name, count(*) filter (where r.status not in ('done', 'failed', 'cancelled')) as running,
        count(*) filter (where r.status = 'done') as completed, count(*) filter (where r.status = 'failed') as failed,
        count(*) filter (where r.status = 'cancelled') as cancelled
      from runs r where r.id < first_message_id() group by r.name
      union all
      select d.name, 0, 0, 0, 0 from definitions d where d.name not like 'pawl-%') c
    group by c.name order by c.name
    limit p_limit;
end $f$;
