-- pawl: call; lock_timeout 100ms
-- Cancels a run, and with p_cascade everything below it, at once and for good. Answers `verdict`:
-- cancelled, already (it was cancelled before), ended (done or failed, see status) or not_found.
-- Also answers the cancelled ids and their definitions, those that gave up their unique key as JSON
-- [[id, name, version], …], and the claimable runs made, by queue.
-- An executing run keeps its holder, and so its partition key and its slot, until the worker ends the claim. The
-- guard refuses whatever that worker still commits.
-- Locks the run and its parent in id order, then level by level without waiting, so that a tree
-- cannot outgrow it. Then it waits for the missed rows in id order, and looks again. A row that
-- stays locked longer than lock_timeout fails the call with 55P03: nothing is written, and the
-- client sends it again. Rides runs_children.
create or replace function cancel(p_id bigint, p_reason text, p_cascade boolean)
returns table (verdict text, status run_status, cancelled text, names text, lost text, claimable text)
language plpgsql as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
  v_tree bigint[];
  v_new bigint[];
  v_missed bigint[] := '{}';
  v_live bigint[];
  v_waited bigint[];
  v_cleared bigint[];
  v_parents bigint[];
  v_child_of int[];
  v_invoked bigint[];
  v_keys text[];
  v_slots text[];
begin
  perform require_read_committed();
  perform require_durable_commit();
  v_tree := array[p_id];
  v_new := v_tree;
  -- parent before child, like every function that locks both
  perform 1 from (select u.id from unnest(v_tree || (select r.parent_id from runs r where r.id = p_id)) u(id)
      where u.id is not null order by u.id) v
    cross join lateral (select 1 from runs r where r.id = v.id limit 1 for no key update) l;
  loop
    v_missed := v_missed || array(
      select u.id from unnest(v_new) u(id)
      left join lateral (select r.id from runs r where r.id = u.id limit 1 for no key update skip locked) l on true
      where l.id is null and (select r.id from runs r where r.id = u.id limit 1) is not null);
    if p_cascade then
      -- the children that they spawned before they were locked; a locked run spawns no more
      v_new := array(
        with recursive grown(id) as (
            select c.id from unnest(v_new) u(id)
            cross join lateral (select t.id from runs t where t.parent_id = u.id) c
            where u.id = any (v_tree) and c.id <> all (v_tree)
          union all
            select c.id from grown cross join lateral (select t.id from runs t where t.parent_id = grown.id) c)
        select g.id from grown g order by g.id);
      v_tree := v_tree || v_new;
      continue when cardinality(v_new) > 0;
    end if;
    exit when cardinality(v_missed) = 0;
    -- other transactions have the rest locked: wait for them, and look again
    perform 1 from (select distinct u.id from unnest(v_missed) u(id) order by u.id) v
      cross join lateral (select 1 from runs r where r.id = v.id limit 1 for no key update) l;
    v_new := v_missed;
    v_missed := '{}';
  end loop;

  select r.status into status from runs r where r.id = p_id and r.id < first_message_id();
  verdict := case when status is null then 'not_found' when status = 'cancelled' then 'already'
    when status in ('done', 'failed') then 'ended' else 'cancelled' end;
  if verdict in ('not_found', 'ended') or (verdict = 'already' and not p_cascade) then
    return next;
    return;
  end if;
  v_live := array(
    select u.id from unnest(v_tree) u(id)
    cross join lateral (select t.status from runs t where t.id = u.id limit 1) r
    where r.status not in ('done', 'failed', 'cancelled'));

  -- read before the update: the keys that lose the first run of their line
  v_keys := array(
    select r.partition_key from unnest(v_live) u(id)
    cross join lateral (select t.partition_key, t.locked_by from runs t where t.id = u.id limit 1) r
    where r.partition_key is not null and r.locked_by is null);
  v_slots := array(
    select r.concurrency from unnest(v_live) u(id)
    cross join lateral (select t.concurrency, t.locked_by from runs t where t.id = u.id limit 1) r
    where r.concurrency is not null and r.locked_by is null);
  -- A run whose scope includes `cancelled` enters it now. It gives its key up if another run has
  -- it, also another one of these. Runs that gave it up before are reported too: no claim will do
  -- it.
  for v_try in 1 .. 2 loop
    begin
      with given_up as (
        update runs r set unique_key = null, unique_scope = null
        from (select e.id
          from (select u.id, k.unique_key, row_number() over (partition by k.unique_key order by u.id) as n from unnest(v_live) u(id)
            cross join lateral (select t.unique_key, t.unique_scope from runs t where t.id = u.id
              and t.unique_scope is not null and t.unique_guard is null limit 1) k
            where k.unique_key is null or 'cancelled' = any (k.unique_scope)) e
          where v_try = 2 or e.n > 1 or e.unique_key is null
            or (select h.id from runs h where h.unique_guard = e.unique_key limit 1) is not null
          limit cardinality(v_live)) v
        where r.id = v.id
        returning r.id, r.name, r.version)
      select jsonb_agg(jsonb_build_array(g.id::text, g.name, g.version))::text into lost from given_up g;
      with ended as (
        -- a rerun begins in the same situation; the journal has that of a workflow
        update runs r set status = 'cancelled', hold = 0, throttled = false,
          awaits = case when r.kind is distinct from 'workflow' then r.awaits || jsonb_build_object('was', r.status) end,
          queue = coalesce(r.queue, 'default'), priority = coalesce(r.priority, 0::smallint),
          retention = coalesce(r.retention, v.retention), completed_at = v_now, expires_at = v_now + coalesce(r.retention, v.retention),
          error = v.error
        from (select u.id, least(interval '30 days', s.retention_ceiling) as retention,
            case when p_reason is not null then jsonb_build_object('name', 'RunCancelled', 'code', 'RunCancelled', 'message', p_reason) end as error
          from settings s, unnest(v_live) u(id) limit cardinality(v_live)) v
        where r.id = v.id
        returning r.id, r.inbox_seq, r.parent_id, r.child_of, r.awaits)
      select array_agg(e.id) filter (where e.awaits is not null), array_agg(e.id) filter (where e.inbox_seq > 0), array_agg(e.parent_id) filter (where e.parent_id is not null),
        array_agg(e.child_of) filter (where e.parent_id is not null),
        array_agg(e.id) filter (where e.parent_id is not null and e.child_of is null)
      into v_waited, v_cleared, v_parents, v_child_of, v_invoked from ended e;
      exit;
    exception when unique_violation then
      if v_try = 2 then
        raise;
      end if;
    end;
  end loop;

  if v_waited is not null then
    perform keep_awaited(v_waited);
  end if;
  if v_cleared is not null then
    perform clear_inboxes(v_cleared, v_now);
  end if;
  claimable := '[]';
  if v_parents is not null then
    claimable := release_parents(v_parents, v_child_of, v_now)::text;
  end if;
  if v_invoked is not null then
    claimable := (claimable::jsonb || deliver_replies(v_invoked, v_now))::text;
  end if;
  if cardinality(v_keys) > 0 then
    claimable := (claimable::jsonb || (select f.claimable from free_keys(v_keys, v_now) f))::text;
  end if;
  if cardinality(v_slots) > 0 then
    claimable := (claimable::jsonb || free_slots(v_slots, v_now))::text;
  end if;
  cancelled := to_jsonb(array(select u.id::text from unnest(v_live) u(id)))::text;
  names := to_jsonb(array(select r.name from unnest(v_live) u(id)
    cross join lateral (select t.name from runs t where t.id = u.id limit 1) r))::text;
  if verdict = 'cancelled' then
    status := 'cancelled';
  end if;
  return next;
end $f$;
