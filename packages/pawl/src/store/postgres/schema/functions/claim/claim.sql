-- pawl: call; lock_timeout 100ms
-- Claims up to p_limit due runs of one queue, of the definitions (p_names, p_versions). Answers
-- them in the order (priority, eligible_at, id), then one row with id null. The meta of that row
-- tells the claimer:
--   floor      [priority, µs] of the first run claimed, or of the place where claim stopped behind
--              1,000 runs that it could not claim. The next call may begin there instead of at the
--              dead head.
--   more       whether claim stopped because of p_limit, 16 MiB, or such runs
--   due_ms     milliseconds until the next run is due, when nothing was left to claim
--   busy       with more than 50 definitions: the positions of those that have due runs
--   throttled  how many runs their rate limits put off
-- First it reads unlocked pages of runs_claim: for each definition a skip scan over its priorities
-- and the first due runs of each, merged. A line that may have more runs than its share of the page
-- bounds the page, so that the order is exact. It never walks over runs of other definitions. Every
-- condition for "claimable" is the CASE of the index: no other index can serve that.
-- Then it tries the advisory locks of the partition keys and of the keys of concurrency limits (a
-- busy key is left to the next call) and locks the runs by primary key (lock_page). It decides in later statements: which run is
-- first in line for its key (claim_keyed), which runs get a slot of their concurrency limit
-- (claim_slots), and which get tokens of their rate limit (claim_limited). A wait whose deadline has passed is claimed as timed out.
-- If a look from the floor on finds less than asked, it looks again without the floor, unless
-- p_bounded. With p_only it looks at that run alone, whose priority is that of the floor
-- (set_aside).
-- A small inbox (inbox_inline) or journal (journal_inline) is part of the answer.
-- A worker whose lease has passed gets nothing, because the reaper would end its claims at once.
-- Its next beat tells it so. In a held database no worker gets anything. Paused queues and
-- definitions are left out.
-- Commits asynchronously: a lost claim is only a lease that was never given, and its random id
-- never returns.
create or replace function claim(
  p_queue text, p_worker text, p_claim_id bigint, p_limit int, p_names text[], p_versions int[],
  p_floor_priority smallint, p_floor_us bigint, p_bounded boolean default false, p_only bigint default null
) returns table (
  id text, name text, version int, step text, priority smallint, attempt int, crashes int,
  parent_id text, partition_key text, timed_out boolean, children int, inbox_seq int, inbox text,
  input text, state text, journal text, waiting text, unique_lost boolean, started_ms double precision, trace text,
  extra text, meta text)
language plpgsql as $f$
#variable_conflict use_column
declare
  c_passed constant int := 1000;                          -- runs that one call passes over
  c_many constant int := 50;                              -- from here on, meta says which are busy
  c_inline constant int := 7 * 1024 * 1024;               -- for all inboxes, and as much for all journals: c_bytes has room for both
  c_bytes constant int := 15 * 1024 * 1024;               -- the 16th MiB is for names and keys
  v_now timestamptz := clock();
  v_timeline text;
  v_is_held boolean;
  v_lowest int := -32769;                                 -- looks behind this priority
  v_is_bound boolean := p_floor_priority is not null;     -- look only behind (priority, at, id)
  v_bound_priority int := coalesce(p_floor_priority, 32768);
  v_bound_at timestamptz := coalesce(timestamptz 'epoch' + p_floor_us * interval '1 microsecond', '-infinity');
  v_bound_id bigint := -1;
  v_bounded boolean := p_floor_priority is not null;      -- this look began at the floor
  v_page int := p_limit;
  v_ids bigint[];
  v_examined int;
  v_block int;                                            -- how many to examine at once
  v_block_min int := 0;
  v_is_left boolean;                                      -- there may be more runs behind the page
  v_keys text[];
  v_limited boolean;
  v_slot_keys text[];                                     -- keys of concurrency limits in this page
  v_slots smallint[];                                     -- the slots of v_ids; null: none
  v_slotted bigint[];                                     -- the runs that v_slots are for
  v_is_admitting boolean;                                 -- some of them were refused
  v_resumed boolean;                                      -- waits of some workflows are due
  v_refused record;
  v_contended boolean := false;
  v_throttled int := 0;
  v_inline int;
  v_passed int := 0;
  v_is_decided boolean := false;                          -- some runs are now blocked or put off
  v_is_stopped boolean := false;                          -- too many runs that cannot be claimed
  v_busy bigint[];
  v_one_lines bigint[];
  v_lines bigint[];                                       -- positions of definitions that have runs
  v_busy_lines bigint[];                                  -- positions of those that have due runs
  v_found int := 0;
  v_bytes bigint := 0;
  v_is_full boolean;
  v_page_rows int;
  v_page_bytes bigint;
  v_first_priority smallint;                              -- no run of this page comes before it
  v_first_at timestamptz;
  v_last_priority smallint;
  v_last_at timestamptz;
  v_last_id bigint;
  v_floor jsonb;
  v_due_ms double precision;
  v_one bigint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform require_read_committed();
  end if;
  select s.timeline, s.held into v_timeline, v_is_held from settings s where s.only_row;
  if timeline() <> v_timeline then
    perform begin_timeline();
  end if;
  -- in the body: a SET clause is undone before the commit
  perform set_config('synchronous_commit', 'off', true);
  -- a worker without queues has stopped
  if v_is_held or not exists (select 1 from workers w
      where w.id = p_worker and w.seen_at + w.lease > clock_timestamp() and w.queues <> '{}') then
    meta := '{"floor": null, "busy": null, "due_ms": null, "more": false, "throttled": 0}';
    return next;
    return;
  end if;
  if has_pauses() then
    -- no run has an empty name; the positions stay, because meta speaks of them
    p_names := array(select case when is_paused(p_queue, s.name, s.version) then '' else s.name end
      from unnest(p_names, p_versions) with ordinality s(name, version, o) order by s.o);
  end if;
  loop
    with recursive level(o, name, version, priority, at, id) as (
        select s.o, s.name, s.version, v_lowest, null::timestamptz, null::bigint from unnest(p_names, p_versions) with ordinality s(name, version, o)
      union all
        -- the next priority of the definition, and when its first run is due
        select l.o, l.name, l.version, n.priority::int, n.eligible_at, n.id from level l cross join lateral (
          (select r.priority, r.eligible_at, r.id from runs r
            where l.priority < v_bound_priority - 1 and r.queue = p_queue and r.name = l.name and r.version = l.version
              and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end
              and r.priority > l.priority and r.priority < v_bound_priority
            order by r.priority, r.eligible_at, r.id limit 1)
          union all
          (select r.priority, r.eligible_at, r.id from runs r
            where v_is_bound and r.queue = p_queue and r.name = l.name and r.version = l.version
              and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end
              and (r.priority, r.eligible_at, r.id) > (greatest(l.priority, v_bound_priority),
                case when l.priority < v_bound_priority then v_bound_at else 'infinity' end,
                case when l.priority < v_bound_priority then v_bound_id else 9223372036854775807 end)
            order by r.priority, r.eligible_at, r.id limit 1)
          limit 1) n
    ), line as materialized (
      -- if there are more lines than asked for, those that begin first share the page
      select l.name, l.version, l.priority from level l
      where l.at <= v_now and (p_only is null or l.priority = p_floor_priority) order by l.priority, l.at, l.id limit v_page
    ), share(rows) as materialized (
      -- more than an even share
      select least(v_page, 3 * v_page / (2 * greatest(count(*), 1)) + 5)::int from line
    ), found as (
      select d.* from line l cross join lateral (
        select t.*, row_number() over () as n from (
          select r.id, r.priority, r.eligible_at, r.partition_key, r.concurrency from runs r
          where r.queue = p_queue and r.name = l.name and r.version = l.version and r.priority = l.priority
            and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.eligible_at <= v_now
            and r.eligible_at >= case when l.priority = v_bound_priority then v_bound_at else '-infinity' end
            and (l.priority <> v_bound_priority or (r.eligible_at, r.id) > (v_bound_at, v_bound_id))
            and (p_only is null or r.id = p_only)
          order by r.eligible_at, r.id limit (select s.rows from share s)) t) d
    ), merged as (
      -- is_behind: behind the last run of a line that may have more
      select f.*, f.n = (select s.rows from share s) as is_edge, bool_or(f.n = (select s.rows from share s))
        over (order by f.priority, f.eligible_at, f.id rows between unbounded preceding and 1 preceding) as is_behind
      from found f
    ), page as materialized (
      select m.* from merged m where m.is_behind is not true limit v_page
    ), marked as (
      -- tries the advisory locks of the keys
      select p.*, case when p.partition_key is null then true else pg_try_advisory_xact_lock(key_lock(p.partition_key)) end
        and case when p.concurrency is null then true else pg_try_advisory_xact_lock(slot_lock(p.concurrency)) end as mine
      from page p
    )
    select array_agg(m.id) filter (where m.mine), count(*), count(*) filter (where not m.mine), coalesce(bool_or(m.is_edge), false),
      (array_agg(m.priority))[count(*)], (array_agg(m.eligible_at))[count(*)], (array_agg(m.id))[count(*)],
      (select array_agg(distinct l.o) from level l where l.at < 'infinity'),
      case when cardinality(p_names) > c_many then (select array_agg(distinct l.o) from level l where l.at <= v_now) end
    into v_ids, v_page_rows, v_one, v_is_left, v_last_priority, v_last_at, v_last_id, v_one_lines, v_busy
    from marked m;    -- in the order of the page, so the last element is the last run
    if v_lowest = -32769 then    -- the first page of a look sees all priorities
      v_lines := v_one_lines;
      v_busy_lines := v_busy;
    end if;
    v_contended := v_contended or v_one > 0;
    v_passed := v_passed + v_one;
    v_is_left := v_is_left or v_page_rows = v_page;
    v_examined := 0;
    v_keys := null;
    v_limited := false;
    v_slot_keys := null;
    v_slots := null;

    v_block := greatest(p_limit - v_found, v_block_min);
    if v_ids is not null then
      select p.ids, p.bytes, p.examined, p.is_full, p.keys, p.is_limited, p.is_resumed, p.first_priority, p.first_at
      into v_ids, v_page_bytes, v_examined, v_is_full, v_keys, v_limited, v_resumed, v_first_priority, v_first_at
      from lock_page(v_ids, p_queue, v_block, c_bytes - v_bytes, v_found, null, v_now) p;
    end if;

    if (v_keys is not null or v_limited) and v_examined = v_block then
      -- some may be refused while the page has more: go on behind the last run examined
      v_is_left := true;
      select r.priority, r.eligible_at, r.id into v_last_priority, v_last_at, v_last_id
        from runs r where r.id = v_ids[cardinality(v_ids)];
    end if;
    if v_limited then
      select array_agg(distinct r.concurrency) filter (where r.concurrency is not null) into v_slot_keys from unnest(v_ids) u(id)
        cross join lateral (select t.concurrency from runs t where t.id = u.id limit 1) r;
    end if;
    if v_keys is not null then
      v_keys := array(select distinct u.key from unnest(v_keys) u(key));
      select k.allowed, k.contended into v_refused from claim_keyed(v_ids, v_keys, v_now) k;
      v_ids := nullif(v_refused.allowed, '{}');
      v_contended := v_contended or v_refused.contended;
    end if;
    if v_slot_keys is not null and v_ids is not null then
      select s.allowed, s.slots, s.contended into v_refused from claim_slots(v_ids, v_slot_keys, v_now) s;
      v_slots := v_refused.slots;
      v_slotted := v_refused.allowed;
      v_ids := v_refused.allowed;
      v_contended := v_contended or v_refused.contended;
    end if;
    if v_limited and v_ids is not null then
      select l.allowed, l.contended, l.freed, l.throttled into v_refused from claim_limited(v_ids, p_limit - v_found, v_now) l;
      v_ids := nullif(v_refused.allowed, '{}');
      v_contended := v_contended or v_refused.contended;
      v_throttled := v_throttled + v_refused.throttled;
      if cardinality(v_refused.freed) > 0 then
        perform unblock_first(v_refused.freed, v_now);
        v_contended := true;
      end if;
    end if;
    if v_examined > coalesce(cardinality(v_ids), 0) then
      v_passed := v_passed + v_examined - coalesce(cardinality(v_ids), 0);
      v_is_decided := true;
      v_block_min := 200;    -- many runs that may not be claimed: examine more at once
    end if;
    v_is_admitting := v_slot_keys is not null and v_examined > coalesce(cardinality(v_ids), 0);
    if cardinality(v_ids) > p_limit - v_found then
      v_ids := v_ids[1 : p_limit - v_found];
    end if;
    if v_slots is not null then
      -- rate limits may have left some out
      v_slots := array(select v_slots[array_position(v_slotted, u.id)] from unnest(v_ids) with ordinality u(id, o) order by u.o);
    end if;

    if v_ids is not null then
      -- the share of each inbox or journal in the bytes that are left
      v_inline := greatest(least(262144, c_inline / p_limit, (c_bytes - v_bytes - v_page_bytes) / (2 * cardinality(v_ids))), 0);
      if v_resumed then
        perform end_lone_wait(r.id, r.awaits, null, v_now) from unnest(v_ids) u(id)
        cross join lateral (select t.id, t.awaits, t.status, t.kind from runs t where t.id = u.id limit 1) r
        where r.status = 'awaiting_signal' and r.kind = 'workflow';
      end if;
      return query select c.*, null::text from take_claims(v_ids, p_worker, p_claim_id, v_now, v_inline, 0, 'settled', v_slots) c;
      get diagnostics v_page_rows = row_count;
      v_found := v_found + v_page_rows;
      v_bytes := v_bytes + v_page_bytes + 2 * v_inline * cardinality(v_ids);
      if v_page_rows < cardinality(v_ids) then
        for i in 1 .. cardinality(v_ids) loop
          return query select c.*, null::text from claim_entering_scope(v_ids[i], p_worker, p_claim_id, v_now, v_inline, v_slots[i]) c;
          get diagnostics v_page_rows = row_count;
          v_found := v_found + v_page_rows;
        end loop;
      end if;
      v_floor := coalesce(v_floor, jsonb_build_array(v_first_priority, to_us(v_first_at)));
    end if;

    if v_is_admitting and admit(array(select k.key from unnest(v_slot_keys) k(key)
        where pg_try_advisory_xact_lock(slot_lock(k.key))), v_now) <> '[]' then
      v_contended := true;    -- runs that wait longer get the slots of those that were refused
    end if;

    exit when v_found >= p_limit or v_is_full;
    if v_is_left and v_passed < c_passed then
      v_lowest := v_last_priority - 1; v_is_bound := true;
      v_bound_priority := v_last_priority; v_bound_at := v_last_at; v_bound_id := v_last_id;
      -- a page keeps the locks of all its keys until the end, so pages with keys stay small
      v_page := case when v_keys is null and v_slot_keys is null and not v_contended then least(c_passed, greatest(100, 4 * v_page)) else greatest(200, p_limit - v_found) end;
    elsif not v_is_left and v_bounded and not p_bounded then
      v_lowest := -32769; v_is_bound := false; v_bound_priority := 32768; v_bounded := false; v_page := p_limit;
    else
      v_is_stopped := v_is_left;
      exit;
    end if;
  end loop;

  if v_is_stopped then
    -- the next call begins behind them; after a look at the whole queue the caller keeps its floor
    if v_floor is null and v_bounded = (p_floor_priority is not null) then
      v_floor := jsonb_build_array(v_last_priority, to_us(v_last_at));
    end if;
  elsif v_found < p_limit and v_is_full is not true and v_lines is not null then
    -- p_bounded: only at the floor's priority, because dead index entries may lie before it
    with recursive level(name, version, priority) as (
        select p_names[l.o], p_versions[l.o], case when p_bounded then p_floor_priority else -32769 end from unnest(v_lines) l(o)
      union all
        select l.name, l.version, n.priority::int from level l cross join lateral (
          select r.priority from runs r
          where r.queue = p_queue and r.name = l.name and r.version = l.version
            and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.priority > l.priority
          order by r.priority limit 1) n
        where not p_bounded
    )
    select ms_until(min(due.eligible_at), v_now) into v_due_ms from level l cross join lateral (
      select r.eligible_at from runs r
      where r.queue = p_queue and r.name = l.name and r.version = l.version and r.priority = l.priority
        and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end
        and r.eligible_at > v_now and r.eligible_at < 'infinity'
      order by r.eligible_at limit 1) due
    where l.priority > -32769;
  end if;
  if v_contended then
    v_due_ms := least(v_due_ms, 5);  -- another transaction decides about some runs: look again soon
  end if;
  meta := jsonb_build_object('floor', v_floor, 'due_ms', v_due_ms, 'busy', v_busy_lines, 'throttled', v_throttled,
    'more', v_found >= p_limit or v_is_full is true or v_is_stopped and (v_found > 0 or v_is_decided))::text;
  if v_found = 0 then
    -- an idle worker need not ask for schedules separately
    meta := (meta::jsonb || jsonb_build_object('schedule_ms', (
      select ms_until(s.due_at, v_now) from schedules s where s.due_at is not null order by s.due_at limit 1)))::text;
  end if;
  return next;
end $f$;
