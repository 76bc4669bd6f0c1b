-- pawl: call
-- Sets a rate limit; the last writer wins. Answers whether runs that the old one put off are to be brought forward
-- (bring_forward): if the new one lets them through sooner. If not, the claim puts them off again when they are due. Writes one
-- row, however many runs or buckets there are.
create or replace function set_limit(p_name text, p_allowed double precision, p_period_ms bigint, p_burst double precision) returns boolean
language plpgsql as $f$
declare
  c_most constant int := 10000;    -- list_limits answers all of them
  v_now timestamptz := now();
  v_period interval := p_period_ms * interval '1 millisecond';
  v_old limits;
begin
  perform require_durable_commit();
  perform require_limit(p_name, p_allowed, v_period, p_burst);
  insert into limits (name, allowed, period, burst, changed_at) values (p_name, p_allowed, v_period, p_burst, v_now)
    on conflict (name) do nothing;
  if found then
    if (select count(*) from limits) > c_most then
      raise exception 'there are % rate limits, which is as many as there may be: change one of them, or use one limit with keys', c_most
        using errcode = 'PW422';
    end if;
    return false;
  end if;
  select l.* into v_old from limits l where l.name = p_name for update;
  if (v_old.allowed, v_old.period, v_old.burst) is not distinct from (p_allowed, v_period, p_burst) then
    return v_old.forward is not null;
  end if;
  if tokens_per_second(p_allowed, v_period) > tokens_per_second(v_old.allowed, v_old.period)
      or tokens_per_second(p_allowed, v_period) = tokens_per_second(v_old.allowed, v_old.period) and p_burst < v_old.burst then
    v_old.forward := '{}';
    v_old.changed_at := v_now;
    v_old.changes := v_old.changes + 1;
  end if;
  update limits l set allowed = p_allowed, period = v_period, burst = p_burst, changed_at = v_old.changed_at, changes = v_old.changes,
      forward = v_old.forward
    where l.name = p_name;
  return v_old.forward is not null;
end $f$;
