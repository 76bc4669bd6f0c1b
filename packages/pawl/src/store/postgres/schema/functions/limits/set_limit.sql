-- pawl: call
-- Sets the rate of a limit, for releases that know only rates. It keeps `concurrent`. Answers like
-- put_limit.
create or replace function set_limit(p_name text, p_allowed double precision, p_period_ms bigint, p_burst double precision) returns boolean
language plpgsql as $f$
begin
  return put_limit(p_name, p_allowed, p_period_ms, p_burst, (select l.concurrent from limits l where l.name = p_name), null);
end $f$;

-- Sets a limit: its rate, or how many runs execute at once (p_concurrent), or both. The last writer
-- wins. Answers whether bring_forward must move runs that the old limit put off, because the new one
-- lets them through sooner. Otherwise claim puts them off again when they are due. The repair admits
-- runs that a larger p_concurrent lets in; after a smaller one, the holders finish and no other run
-- begins. Writes one row, however many runs or buckets there are, and for a change a line of the
-- action log (p_by, see note_action).
create or replace function put_limit(
  p_name text, p_allowed double precision, p_period_ms bigint, p_burst double precision, p_concurrent int, p_by text) returns boolean
language plpgsql as $f$
declare
  c_most constant int := 10000;    -- list_limits answers all of them
  v_now timestamptz := clock();
  v_period interval := p_period_ms * interval '1 millisecond';
  v_log jsonb := jsonb_build_object('allowed', p_allowed, 'periodMs', p_period_ms, 'burst', p_burst, 'concurrent', p_concurrent);
  v_old limits;
begin
  perform require_durable_commit();
  if p_allowed is not null then
    perform require_limit(p_name, p_allowed, v_period, p_burst);
  elsif p_concurrent is null then
    raise exception 'the limit "%" limits nothing: give it a rate (allowed and period), or concurrent, or both', p_name
      using errcode = 'PW422';
  end if;
  if p_concurrent not between 1 and 32767 then
    raise exception 'concurrent of the limit "%" must be from 1 to 32767, not %', p_name, p_concurrent using errcode = 'PW422';
  end if;
  insert into limits (name, allowed, period, burst, concurrent, changed_at)
    values (p_name, p_allowed, v_period, p_burst, p_concurrent, v_now) on conflict (name) do nothing;
  if found then
    if (select count(*) from limits) > c_most then
      raise exception 'there are % limits, the most there may be: change one of them, or use one limit with keys', c_most
        using errcode = 'PW422';
    end if;
    perform note_action(p_by, 'limits.set', p_name, v_log);
    return false;
  end if;
  select l.* into v_old from limits l where l.name = p_name for update;
  if (v_old.allowed, v_old.period, v_old.burst, v_old.concurrent::int) is not distinct from (p_allowed, v_period, p_burst, p_concurrent) then
    return v_old.forward is not null;
  end if;
  if tokens_per_second(p_allowed, v_period) > tokens_per_second(v_old.allowed, v_old.period)
      or tokens_per_second(p_allowed, v_period) = tokens_per_second(v_old.allowed, v_old.period) and p_burst < v_old.burst then
    v_old.forward := '{}';
    v_old.changed_at := v_now;
    v_old.changes := v_old.changes + 1;
  elsif p_allowed is null then
    v_old.forward := null;    -- runs that the rate put off keep their time
  end if;
  update limits l set allowed = p_allowed, period = v_period, burst = p_burst, concurrent = p_concurrent,
      changed_at = v_old.changed_at, changes = v_old.changes, forward = v_old.forward
    where l.name = p_name;
  perform note_action(p_by, 'limits.set', p_name, v_log);
  return v_old.forward is not null;
end $f$;
