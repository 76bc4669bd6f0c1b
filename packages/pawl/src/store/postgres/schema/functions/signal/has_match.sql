-- pawl: inner
-- Whether a run's inbox holds a signal that this await wants and that was not shown yet: then the wait is over at once.
-- Signals that the step has seen do not count, so a step that gathers signals by waiting again does not spin.
-- A workflow has tried all signals up to `after` of the await. Rides signals_inbox; shown seqs are looked up as ranges, so that gathering thousands stays cheap.
create or replace function has_match(p_run_id bigint, p_awaits jsonb, p_shown jsonb) returns boolean
language plpgsql stable as $f$
declare
  v_shown int4multirange := '{}';
begin
  if not exists (select 1 from signals s where s.run_id = p_run_id and s.consumed_at is null) then
    return false;
  end if;
  if p_shown is not null then
    select coalesce(range_agg(int4range(x::int, x::int, '[]')), '{}') into v_shown from jsonb_array_elements_text(p_shown) x;
  end if;
  return exists (
    select 1 from signals s
    where s.run_id = p_run_id and s.consumed_at is null
      and s.seq > coalesce((p_awaits ->> 'after')::int, 0) and is_wanted(p_awaits, s.name, s.payload)
      and not s.seq <@ v_shown);
end $f$;
