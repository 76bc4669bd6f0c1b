-- pawl: call
-- Puts signals into inboxes, one per position of the arrays, and wakes the runs that await them, in
-- one transaction. Answers one row per position with the definition and the trace of the run; the
-- first row also has the claimable runs made, by queue. `verdict` is one of
--   delivered  in the inbox, for good
--   duplicate  the run had a signal with this dedup key before, consumed or not, terminal or not:
--              nothing was done
--   not_found  there is no such run
--   ended      the run is terminal
--   full       10,000 signals wait in the inbox, and this one does not end the run's present wait:
--              such a signal is always taken
-- A lone signal outside of a caller's transaction goes to signal_one first.
-- Locks the runs in id order in a statement of its own, whatever their status. An update that
-- looked only for waiting runs would miss one that is just about to wait. Signals of several
-- callers (not p_patient) wait at most 100 ms for a locked run; then the call fails with 55P03 and
-- nothing is written.
-- Correct in any isolation level of a caller's transaction: above READ COMMITTED, PostgreSQL raises
-- 40001 if the run changed after the snapshot. Every signal and every commit writes the row of its
-- run, so an unchanged row means an unchanged inbox.
-- A caller's transaction may send thousands of signals to one run. PostgreSQL keeps each version of
-- a row until the transaction ends, and every look at the row walks over all of them. So from the
-- second signal on it raises inbox_seq by 1, 2, 4, … at a time, and takes the seqs in between
-- without writing the run. The setting `pawl.sent`, local to the transaction, notes where it is
-- ({run: [next, last, how many]}).
create or replace function signal(p_run_id bigint[], p_name text[], p_payload text[], p_dedup_key text[], p_patient boolean)
returns table ("position" int, verdict text, run_name text, trace text, claimable text)
language plpgsql as $f$
#variable_conflict use_column
declare
  c_inbox constant int := 10000;
  c_sent constant int := 16;
  v_now timestamptz := clock();
  v_verdicts text[];
  v_run_names text[];
  v_traces text[];
  v_sender text;            -- this transaction, in this schema
  v_sent jsonb := '{}';      -- the seqs that this transaction has taken, by run
  v_new_runs bigint[];
  v_new_seqs int[];
  v_entering bigint[];
  v_claimable jsonb;
begin
  perform require_durable_commit();
  perform require_short_names('signal', p_name);
  if not p_patient then
    perform set_config('lock_timeout', '100ms', true);
  elsif cardinality(p_run_id) <= c_sent then
    v_sender := pg_current_xact_id()::text || ' ' || current_schema() || ' ';
    if starts_with(current_setting('pawl.sent', true), v_sender) then
      v_sent := substr(current_setting('pawl.sent', true), length(v_sender) + 1);
    end if;
  end if;
  perform 1 from (select distinct u.id from unnest(p_run_id) u(id) order by u.id) v
    cross join lateral (select 1 from runs r where r.id = v.id limit 1 for no key update) l;

  with item as (
    select u.run_id, u.name, u.payload::jsonb as payload, u.dedup_key, u.o::int as o, r.status, r.name as run_name, r.trace,
      case when (v_sent -> u.run_id::text ->> 0)::int + cardinality(p_run_id) - 1 <= (v_sent -> u.run_id::text ->> 1)::int
        then (v_sent -> u.run_id::text ->> 0)::int - 1 else r.inbox_seq end as before,
      case when u.dedup_key is null then u.o else min(u.o) over (partition by u.run_id, u.dedup_key) end::int as first_o,
      case when r.status is null then 'not_found'
        when u.dedup_key is not null and (select s.seq from signals s
          where s.run_id = u.run_id and s.dedup_key = u.dedup_key limit 1) is not null then 'duplicate'
        when r.status in ('done', 'failed', 'cancelled') then 'ended'
        when r.inbox_seq >= c_inbox - cardinality(p_run_id) then 'counted'
        else 'delivered' end as verdict,
      coalesce(r.status = 'awaiting_signal' and r.inbox_seq >= c_inbox - cardinality(p_run_id)
        and is_wanted(r.awaits, u.name, u.payload::jsonb), false) as is_awaited
    from unnest(p_run_id, p_name, p_payload, p_dedup_key) with ordinality u(run_id, name, payload, dedup_key, o)
    left join lateral (select t.status, t.inbox_seq, t.awaits, t.name, t.trace from runs t
      where t.id = u.run_id and t.id < first_message_id() limit 1) r on true
  ), numbered as (
    select i.*, row_number() over (partition by i.run_id order by i.o)::int as n,
      i.is_awaited and row_number() over (partition by i.run_id, i.is_awaited order by i.o) = 1 as ends_wait from item i
    where i.verdict in ('delivered', 'counted') and i.o = i.first_o
  ), accepted as (
    select n.*, n.before + row_number() over (partition by n.run_id order by n.o)::int as seq from numbered n
    where n.verdict = 'delivered' or n.ends_wait or n.n + (select count(*) from (
      select 1 from signals s where s.run_id = n.run_id and s.consumed_at is null limit c_inbox) waiting) <= c_inbox
  ), inserted as (
    insert into signals (run_id, seq, name, payload, dedup_key, inserted_at)
    select a.run_id, a.seq, a.name, a.payload, a.dedup_key, v_now from accepted a order by a.run_id, a.seq
    on conflict do nothing
    returning run_id, seq
  ), delivered as (
    select a.o from accepted a where (a.run_id, a.seq) in (select i.run_id, i.seq from inserted i)
  )
  select array_agg(case when i.o in (select d.o from delivered d) then 'delivered'
      when i.first_o in (select d.o from delivered d) then 'duplicate'    -- of another in this call
      when i.verdict = 'counted' then 'full' else i.verdict end order by i.o),
    array_agg(i.run_name order by i.o), array_agg(i.trace order by i.o),
    (select array_agg(n.run_id) from inserted n), (select array_agg(n.seq) from inserted n)
  into v_verdicts, v_run_names, v_traces, v_new_runs, v_new_seqs from item i;

  -- Counts the new signals in their runs. Runs that await one of them become runnable, by wake_runs
  -- if they enter their unique scope by that.
  with new as (
    select u.run_id, max(u.seq) as seq, bool_or(r.can_enter) as can_enter,
      bool_or(r.status = 'awaiting_signal' and is_wanted(r.awaits, s.name, s.payload)) as is_met
    from unnest(v_new_runs, v_new_seqs) u(run_id, seq)
    cross join lateral (select t.status, t.awaits, t.unique_key is null or t.unique_guard is not null as can_enter
      from runs t where t.id = u.run_id limit 1) r
    cross join lateral (select t.name, t.payload from signals t
      where t.run_id = u.run_id and t.seq = u.seq limit 1) s
    group by u.run_id
  ), counted as (
    update runs r set inbox_seq = greatest(r.inbox_seq, v.seq + v.ahead),
      status = case when v.is_met and v.can_enter then 'runnable'::run_status else r.status end,
      eligible_at = case when v.is_met and v.can_enter then least(r.eligible_at, v_now) else r.eligible_at end
    from (select n.run_id, n.seq, n.is_met, n.can_enter,
        case when n.seq > (v_sent -> n.run_id::text ->> 1)::int then (v_sent -> n.run_id::text ->> 2)::int else 0 end as ahead
      from new n limit cardinality(p_run_id)) v
    where r.id = v.run_id and (v.seq > r.inbox_seq or v.is_met) is true
    returning r.id, r.queue, r.priority, r.eligible_at, v.is_met, v.can_enter)
  select array_agg(c.id) filter (where c.is_met and not c.can_enter),
    coalesce(jsonb_agg(distinct jsonb_build_array(c.queue, c.priority, to_us(c.eligible_at)))
      filter (where c.is_met and c.can_enter), '[]')
  into v_entering, v_claimable from counted c;
  if v_entering is not null then
    v_claimable := v_claimable || wake_runs(v_entering, v_now);
  end if;

  if v_sender is not null and v_new_runs is not null then
    if (select count(*) from jsonb_object_keys(v_sent)) > c_sent then
      v_sent := '{}';    -- a transaction that sends to so many runs sends few to each
    end if;
    select v_sent || jsonb_object_agg(n.run_id, case when not v_sent ? n.run_id::text then jsonb_build_array(n.seq + 1, n.seq, 1)
        when n.seq <= (v_sent -> n.run_id::text ->> 1)::int then jsonb_set(v_sent -> n.run_id::text, '{0}', to_jsonb(n.seq + 1))
        else jsonb_build_array(n.seq + 1, n.seq + (v_sent -> n.run_id::text ->> 2)::int, least(2 * (v_sent -> n.run_id::text ->> 2)::int, 4096)) end)
      into v_sent from (select u.run_id, max(u.seq) as seq from unnest(v_new_runs, v_new_seqs) u(run_id, seq) group by u.run_id) n;
    perform set_config('pawl.sent', v_sender || v_sent::text, true);
  end if;

  claimable := case when v_claimable <> '[]' then v_claimable::text end;
  for i in 1 .. cardinality(p_run_id) loop
    "position" := i;
    verdict := v_verdicts[i];
    run_name := v_run_names[i];
    trace := v_traces[i];
    return next;
    claimable := null;
  end loop;
end $f$;
