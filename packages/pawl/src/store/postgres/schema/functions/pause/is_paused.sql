-- pawl: inner
-- Whether the queue or the definition of a run is paused. Bit 16 of runs.hold says whether the run
-- itself is. Every function that hands out claims checks both (claim, hand_over, start, start_one,
-- signal_one). So do commit, when the worker wants to keep the claim, and record. receive checks
-- the queue. In PL/pgSQL, so that a statement that seldom asks does not prepare the query each time.
create or replace function is_paused(p_queue text, p_name text, p_version int) returns boolean language plpgsql stable as $f$
begin
  perform 1 from pauses p
    where case when p.scope = 'queue' then p.name = p_queue else p.name = p_name and p.version in (0, p_version) end;
  return found;
end $f$;

-- Whether anything is paused but single runs: asked once per call, before looking at each run.
create or replace function has_pauses() returns boolean language sql stable as $$
  select exists (select 1 from pauses)
$$;

-- Who paused a live run, since when and why, as JSON: the pause of the run itself, else of its
-- queue, else of its definition. Null: it is not paused.
create or replace function pause_of(p_run runs) returns jsonb language plpgsql stable as $f$
begin
  if p_run.status in ('done', 'failed', 'cancelled') then
    return null;
  end if;
  if (p_run.hold & 16) <> 0 then
    return jsonb_build_object('scope', 'run') || (extras_of(p_run)).paused;
  end if;
  return (
    select jsonb_build_object('scope', p.scope, 'by', p.paused_by, 'reason', p.reason, 'since', iso(p.paused_at)) from pauses p
    where case when p.scope = 'queue' then p.name = p_run.queue else p.name = p_run.name and p.version in (0, p_run.version) end
    order by p.scope desc, p.version limit 1);
end $f$;
