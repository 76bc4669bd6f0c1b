-- pawl: inner
-- Cancels a run, and with p_cascade everything below it, at once and for good. Answers `verdict`:
-- cancelled, already (it was cancelled before), ended (done or failed, see status) or not_found.
-- Also answers the cancelled ids and their definitions, those that gave up their unique key as JSON
-- [[id, name, version], …], and the claimable runs made, by queue.
-- An executing run keeps its holder, and so its partition key and its slot, until the worker ends the claim. The
-- guard refuses whatever that worker still commits.
-- Locks the run and its parent in id order, then level by level without waiting, so that a tree
-- cannot outgrow it. Then it waits for the missed rows in id order, and looks again. A row that
-- stays locked longer than the caller's lock_timeout fails with 55P03: nothing is written. Called by
-- cancel, by bulk operations and by schedules. Rides runs_children.
create or replace function cancel_run(p_id bigint, p_reason text, p_cascade boolean)
returns table (verdict text, status run_status, cancelled text, names text, lost text, claimable text)
language plpgsql as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
  v_tree bigint[];
  v_new bigint[];
  v_missed bigint[] := '{}';
  v_live bigint[];
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

  select e.lost, e.claimable into lost, claimable from end_runs(v_live, 'cancelled',
    case when p_reason is not null then jsonb_build_object('name', 'RunCancelled', 'code', 'RunCancelled', 'message', p_reason) end, v_now) e;
  cancelled := to_jsonb(array(select u.id::text from unnest(v_live) u(id)))::text;
  names := to_jsonb(array(select r.name from unnest(v_live) u(id)
    cross join lateral (select t.name from runs t where t.id = u.id limit 1) r))::text;
  if verdict = 'cancelled' then
    status := 'cancelled';
  end if;
  return next;
end $f$;
