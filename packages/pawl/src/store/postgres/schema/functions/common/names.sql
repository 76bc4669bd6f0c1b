-- pawl: inner
-- Raises if a name or key is too long. It is no constraint of runs, because PostgreSQL would
-- prepare that anew for every statement that writes a run: a tenth of the time of a single commit.
create or replace function require_names(p_runs new_run[]) returns void language plpgsql as $f$
declare
  v_what text;
begin
  select case when octet_length(u.name) > 256 then 'the name' when octet_length(u.queue) > 256 then 'the queue'
      when octet_length(u.step) > 256 then 'the step' when octet_length(u.idempotency_key) > 512 then 'the idempotency key'
      when octet_length(u.unique_key) > 512 then 'the unique key' when octet_length(u.partition_key) > 512 then 'the partition key'
      else 'the rate limit' end
  into v_what
  from unnest(p_runs) u where is_misnamed(u) and not starts_with(u.partition_key, chr(1)) is true limit 1;
  if not found then
    perform require_free_key(u.partition_key) from unnest(p_runs) u where starts_with(u.partition_key, chr(1));
  else
    raise exception '% is too long: shorten it, a name has at most 256 bytes, a key 512', v_what using errcode = 'PW422';
  end if;
end $f$;

-- Whether require_names raises about a run. The planner inlines this.
create or replace function is_misnamed(p_run new_run) returns boolean language sql immutable as $$
  select octet_length((p_run).name) > 256 or octet_length((p_run).queue) > 256 or octet_length((p_run).step) > 256
    or octet_length((p_run).idempotency_key) > 512 or octet_length((p_run).unique_key) > 512
    or octet_length((p_run).partition_key) > 512 or octet_length((p_run).rate_limit) > 512 or starts_with((p_run).partition_key, chr(1))
$$;

-- Raises if a partition key begins with the control character that group_key puts before the keys of
-- groups of messages.
create or replace function require_free_key(p_key text) returns void language plpgsql as $f$
begin
  if starts_with(p_key, chr(1)) then
    raise exception 'the partition key begins with the control character 1, which Pawl keeps for groups of messages: leave it out'
      using errcode = 'PW422';
  end if;
end $f$;

-- Raises if the name of a signal or topic is too long, whatever way it came.
create or replace function require_short_names(p_what text, p_name text[]) returns void language plpgsql as $f$
declare
  v_name text;
begin
  select u.name into v_name from unnest(p_name) u(name) where octet_length(u.name) > 256 limit 1;
  if found then
    raise exception 'the name of a % has at most 256 bytes, not %; shorten %…', p_what, octet_length(v_name), quote_literal(left(v_name, 60))
      using errcode = 'PW422';
  end if;
end $f$;

-- The functions in functions/sql (start, signal, send, publish) are for people and programs that
-- use SQL. They take named arguments and check them like the library. They run in the caller's
-- transaction and wait for a locked key or run. They raise PW404 (no such run), PW409 (keys of two
-- runs, or a run that has ended), PW413 (a full inbox) or PW422 (a wrong argument).

-- Raises on a name that the library would refuse. Short names are those of definitions and queues,
-- long names those of steps and signals. Short names that begin with pawl- are the engine's own.
create or replace function require_name(p_what text, p_name text, p_is_short boolean) returns void language plpgsql as $f$
begin
  if p_is_short and starts_with(p_name, 'pawl-') then
    raise exception 'the name of a % must not begin with "pawl-", which is reserved for Pawl itself; not %', p_what,
      quote_literal(left(p_name, 60)) using errcode = 'PW422';
  end if;
  if p_name ~ (case when p_is_short then '^[a-z0-9][a-z0-9_-]{0,47}$' else '^[a-zA-Z0-9._-]{1,128}$' end) then
    return;
  end if;
  raise exception 'the name of a % must be %, not %', p_what,
    case when p_is_short then '1 to 48 characters of a-z, 0-9, _ and -, the first a letter or digit'
      else '1 to 128 characters of a-z, A-Z, 0-9, ., _ and -' end,
    coalesce(quote_literal(left(p_name, 60)), 'null')
    using errcode = 'PW422';
end $f$;
