-- pawl: call; lock_timeout 100ms
-- Makes a subscription and answers its id; if there is one of this pattern and target, that one, with the secret given now, or (null)
-- the one it has.
-- p_owner is the token that makes it. So many of one token may want the same topic that a publication of the usual limit, 1 MiB, stays within
-- what a publication may write. One token alone cannot make the publications of others fail; several together can.
create or replace function subscribe(p_pattern text, p_target jsonb, p_secret text, p_owner text default null)
returns table (id bigint, created boolean) language plpgsql as $f$
#variable_conflict use_column
declare
  c_most constant int := 10000;    -- a publication looks at all of them
  c_meeting constant int := 250;   -- of one token
begin
  perform require_durable_commit();
  if starts_with(coalesce(p_target ->> 'name', p_target ->> 'queue'), 'pawl-') then
    raise exception 'the target of a subscription must not begin with "pawl-", which is reserved for Pawl itself; not %', p_target
      using errcode = 'PW422';
  end if;
  perform require_short_names('topic', array[p_pattern]);
  if (select count(*) from subscriptions) >= c_most then
    raise exception 'there are % subscriptions, which is as many as there may be; delete some', c_most using errcode = 'PW422';
  end if;
  if p_owner is not null and (select count(*) from subscriptions s where s.owner = p_owner and patterns_meet(s.pattern, p_pattern)
      and (s.pattern, s.target) is distinct from (p_pattern, p_target)) >= c_meeting then
    raise exception 'this token has % subscriptions that want the same topics as %, which is as many as it may have: '
      'subscribe one workflow that passes the message on, or delete some', c_meeting, quote_literal(p_pattern) using errcode = 'PW422';
  end if;
  return query
    insert into subscriptions as s (pattern, target, secret, owner, inserted_at) values (p_pattern, p_target, p_secret, p_owner, now())
    on conflict (pattern, target) do update set secret = coalesce(excluded.secret, s.secret)
    returning s.id, s.xmax = 0;
end $f$;
