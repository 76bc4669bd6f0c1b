-- pawl: inner
-- Ends live runs from outside: cancel, or a deadline (fail_overdue). The caller has locked them and
-- their parents. An executing run keeps its holder, and so its partition key and its slot, until its
-- worker ends the claim. The parents learn of the end, and the keys and slots of runs that waited go
-- to the next in line.
-- Answers the runs that gave up their unique key as JSON [[id, name, version], …] (null: none), and
-- the claimable runs made, by queue.
create or replace function end_runs(p_id bigint[], p_status run_status, p_error jsonb, p_now timestamptz, out lost text, out claimable text)
language plpgsql as $f$
declare
  v_waited bigint[];
  v_marked bigint[];
  v_cleared bigint[];
  v_parents bigint[];
  v_child_of int[];
  v_invoked bigint[];
  v_keys text[];
  v_slotted bigint[];
begin
  -- read before the update: the keys that lose the first run of their line
  v_keys := array(
    select r.partition_key from unnest(p_id) u(id)
    cross join lateral (select t.partition_key, t.locked_by from runs t where t.id = u.id limit 1) r
    where r.partition_key is not null and r.locked_by is null);
  v_slotted := array(
    select u.id from unnest(p_id) u(id)
    cross join lateral (select t.concurrency, t.locked_by from runs t where t.id = u.id limit 1) r
    where r.concurrency is not null and r.locked_by is null);
  -- A run whose scope includes the new status enters it now. It gives its key up if another run has
  -- it, also another one of these. Runs that gave it up before are reported too: no claim will do
  -- it.
  for v_try in 1 .. 2 loop
    begin
      with given_up as (
        update runs r set unique_key = null, unique_scope = null
        from (select e.id
          from (select u.id, k.unique_key, row_number() over (partition by k.unique_key order by u.id) as n from unnest(p_id) u(id)
            cross join lateral (select t.unique_key, t.unique_scope from runs t where t.id = u.id
              and t.unique_scope is not null and t.unique_guard is null limit 1) k
            where k.unique_key is null or p_status = any (k.unique_scope)) e
          where v_try = 2 or e.n > 1 or e.unique_key is null
            or (select h.id from runs h where h.unique_guard = e.unique_key limit 1) is not null
          limit cardinality(p_id)) v
        where r.id = v.id
        returning r.id, r.name, r.version)
      select jsonb_agg(jsonb_build_array(g.id::text, g.name, g.version))::text into lost from given_up g;
      with ended as (
        -- a rerun begins in the same situation; the journal has that of a workflow
        update runs r set status = p_status, hold = 0, throttled = false,
          awaits = case when r.kind is distinct from 'workflow' then r.awaits || jsonb_build_object('was', r.status) end,
          queue = coalesce(r.queue, 'default'), priority = coalesce(r.priority, 0::smallint),
          retention = coalesce(r.retention, v.retention), completed_at = p_now, expires_at = p_now + coalesce(r.retention, v.retention),
          error = p_error
        from (select u.id, least(interval '720 hours', s.retention_ceiling) as retention
          from settings s, unnest(p_id) u(id) limit cardinality(p_id)) v
        where r.id = v.id
        returning r.id, r.inbox_seq, r.parent_id, r.child_of, r.awaits, r.has_extras)
      select array_agg(e.id) filter (where e.awaits is not null), array_agg(e.id) filter (where e.has_extras), array_agg(e.id) filter (where e.inbox_seq > 0),
        array_agg(e.parent_id) filter (where e.parent_id is not null),
        array_agg(e.child_of) filter (where e.parent_id is not null),
        array_agg(e.id) filter (where e.parent_id is not null and e.child_of is null)
      into v_waited, v_marked, v_cleared, v_parents, v_child_of, v_invoked from ended e;
      exit;
    exception when unique_violation then
      if v_try = 2 then
        raise;
      end if;
    end;
  end loop;

  if v_marked is not null then
    perform end_extras(v_marked);
  end if;
  if v_waited is not null then
    perform keep_awaited(v_waited);
  end if;
  if v_cleared is not null then
    perform clear_inboxes(v_cleared, p_now);
  end if;
  claimable := '[]';
  if v_parents is not null then
    claimable := release_parents(v_parents, v_child_of, p_now)::text;
  end if;
  if v_invoked is not null then
    claimable := (claimable::jsonb || deliver_replies(v_invoked, p_now))::text;
  end if;
  if cardinality(v_keys) > 0 then
    claimable := (claimable::jsonb || (select f.claimable from free_keys(v_keys, p_now) f))::text;
  end if;
  if v_slotted <> '{}' then
    claimable := (claimable::jsonb || free_slots(leave_slots(v_slotted), p_now))::text;
  end if;
end $f$;
