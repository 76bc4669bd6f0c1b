-- pawl: call
-- Guards the worker protocol: a token may act for the workers that it registered, and for the runs that they hold, and for nothing else.
-- A call through a server with tokens names this function in the same statement, so that both are
-- one round trip and one transaction: if this raises, the call writes nothing.
--   select "commit".* from require_owner(…) cross join commit(…) "commit"
-- Raises PW403 if p_worker was registered by another token (or none), or if
-- such a worker holds one of the claims (p_id with p_claim_id); without claim ids, if no worker of p_owner holds the run. A worker that is
-- not registered, and a claim that nobody holds, pass: the call itself answers that they are gone. Nobody else can come to hold a claim
-- between check and call: its id is random and made for one call. Rides the primary keys of workers and runs.
create or replace function require_owner(p_owner text, p_worker text, p_id bigint[], p_claim_id bigint[]) returns boolean
language plpgsql stable as $f$
declare
  v_id bigint;
begin
  perform 1 from workers w where w.id = p_worker and w.owner is distinct from p_owner;
  if found then
    raise exception 'the worker "%" was not registered with this token: register one of your own, and use its id', p_worker
      using errcode = 'PW403';
  end if;
  if p_claim_id is not null then
    select r.id into v_id from unnest(p_id, p_claim_id) u(id, claim_id)
    cross join lateral (select t.id, t.locked_by from runs t
      where t.id = u.id and t.claim_id = u.claim_id and (t.locked_by is not null) is true limit 1) r
    left join lateral (select w.owner from workers w where w.id = r.locked_by limit 1) h on true
    where h.owner is distinct from p_owner limit 1;
    if found then
      raise exception 'run % is held by a worker that was not registered with this token: act for your own claims only', v_id
        using errcode = 'PW403';
    end if;
  elsif p_id is not null and cardinality(owned_runs(p_owner, p_id)) < cardinality(p_id) then
    raise exception 'no worker of this token holds run %: claim it first', array_to_string(p_id, ', ') using errcode = 'PW403';
  end if;
  return true;
end $f$;

-- Those of the runs that workers of this owner hold.
create or replace function owned_runs(p_owner text, p_id bigint[]) returns bigint[] language plpgsql stable as $f$
begin
  return array(
    select r.id from unnest(p_id) u(id)
    cross join lateral (select t.id, t.locked_by from runs t
      where t.id = u.id and (t.locked_by is not null) is true limit 1) r
    cross join lateral (select 1 from workers w where w.id = r.locked_by and w.owner = p_owner limit 1) h);
end $f$;
