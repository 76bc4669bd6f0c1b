-- pawl: call; lock_timeout 100ms
-- Claims up to p_limit due runs of one queue that are of the definitions (p_names, p_versions), in the order (priority,
-- eligible_at, id), and answers them in that order, then one row with id null whose meta says what the feeder needs for
-- its next call:
--   floor   [priority, µs] of the first run claimed, or of where it stopped behind 1,000 runs that it could not claim: the
--           next call may begin there instead of at the dead head
--   more    whether it stopped because p_limit or 16 MiB were reached, or behind such runs
--   due_ms  milliseconds until the next run is due, when there was nothing left to claim
--   busy    of more than 50 definitions: the positions of those that have due runs
--   throttled  how many runs were put off by their rate limits
-- (What is claimable is written as the CASE of the index everywhere: no other index can serve that.)
-- Reads unlocked pages of runs_claim: for each definition a skip scan over its priorities and the first due runs of each,
-- merged. A line that may go on behind its share of the page bounds the page, so that the order is exact. Runs of other
-- definitions are never walked over. Then it takes the advisory locks of the partition keys (a key that it does not get at
-- once is left for the next call), locks by primary key with SKIP LOCKED and decides in statements of their own: who is
-- first in line for its key (claim_keyed), and for whom its rate limit has tokens (claim_limited). A wait whose deadline
-- has passed is claimed as timed out. A look from the floor on that finds less than asked looks again without it, unless
-- p_bounded. With p_only it looks at that run alone, which has the priority of the floor (set_aside).
-- A run's inbox comes along if it is small (inbox_inline), or the journal of a workflow (journal_inline).
-- A worker whose lease has passed gets nothing: it would be taken from it at once (its next beat tells it). Nor does any in a database
-- that is held.
-- Committed asynchronously: a lost claim is only a lease that was never given, and its random id never returns.
create or replace function claim(
  p_queue text, p_worker text, p_claim_id bigint, p_limit int, p_names text[], p_versions int[],
  p_floor_priority smallint, p_floor_us bigint, p_bounded boolean default false, p_only bigint default null
) returns table (
  id text, name text, version int, step text, priority smallint, attempt int, crashes int,
  parent_id text, partition_key text, timed_out boolean, children int, inbox_seq int, inbox text,
  input text, state text, journal text, waiting text, unique_lost boolean, started_ms double precision, trace text, meta text)
language plpgsql as $f$
#variable_conflict use_column
declare
  c_passed constant int := 1000;                          -- runs passed over in one call: not claimable yet
  c_many constant int := 50;                              -- definitions: of more, the caller asks for some alone now and then
  c_inline constant int := 8 * 1024 * 1024;               -- what all inboxes and journals together may add
  c_bytes constant int := 15 * 1024 * 1024;               -- what one call may answer, with them: 16 MiB, less what names and keys take
  v_now timestamptz := now();
  v_timeline text;
  v_is_held boolean;
  v_lowest int := -32769;                                 -- looks behind this priority
  v_is_bound boolean := p_floor_priority is not null;     -- at the priority of the bound only past (at, id)
  v_bound_priority int := coalesce(p_floor_priority, 32768);
  v_bound_at timestamptz := coalesce(timestamptz 'epoch' + p_floor_us * interval '1 microsecond', '-infinity');
  v_bound_id bigint := -1;
  v_bounded boolean := p_floor_priority is not null;      -- this look began at the floor
  v_page int := p_limit;
  v_ids bigint[];
  v_sizes int[];                                          -- their bytes
  v_examined int;
  v_block int;                                            -- how many to examine at once
  v_block_min int := 0;
  v_is_left boolean;                                      -- there may be more behind what was looked at
  v_keys text[];
  v_limited boolean;
  v_resumed boolean;                                      -- the time of some workflows' waits has come
  v_refused record;
  v_contended boolean := false;
  v_throttled int := 0;
  v_inline int;
  v_passed int := 0;
  v_is_decided boolean := false;                          -- some that lay in the way do so no longer
  v_is_stopped boolean := false;                          -- by those that do
  v_busy bigint[];
  v_one_lines bigint[];
  v_lines bigint[];                                       -- positions of the definitions that have runs
  v_busy_lines bigint[];                                  -- and of those that have due ones
  v_found int := 0;
  v_bytes bigint := 0;
  v_is_full boolean;
  v_page_rows int;
  v_page_bytes bigint;
  v_first_priority smallint;                              -- no run of this page is before
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
  perform set_config('synchronous_commit', 'off', true);  -- in the body: a SET clause is undone before the commit
  -- a worker without queues has stopped
  if v_is_held or not exists (select 1 from workers w
      where w.id = p_worker and w.seen_at + w.lease > clock_timestamp() and w.queues <> '{}') then
    meta := '{"floor": null, "busy": null, "due_ms": null, "more": false, "throttled": 0}';
    return next;
    return;
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
      -- of more lines than are asked for, those that begin first have all of the page
      select l.name, l.version, l.priority from level l
      where l.at <= v_now and (p_only is null or l.priority = p_floor_priority) order by l.priority, l.at, l.id limit v_page
    ), share(rows) as materialized (
      -- of an even share more than enough
      select least(v_page, 3 * v_page / (2 * greatest(count(*), 1)) + 5)::int from line
    ), found as (
      select d.* from line l cross join lateral (
        select t.*, row_number() over () as n from (
          select r.id, r.priority, r.eligible_at, r.partition_key from runs r
          where r.queue = p_queue and r.name = l.name and r.version = l.version and r.priority = l.priority
            and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end and r.eligible_at <= v_now
            and r.eligible_at >= case when l.priority = v_bound_priority then v_bound_at else '-infinity' end
            and (l.priority <> v_bound_priority or (r.eligible_at, r.id) > (v_bound_at, v_bound_id))
            and (p_only is null or r.id = p_only)
          order by r.eligible_at, r.id limit (select s.rows from share s)) t) d
    ), merged as (
      -- what is behind the last of a line that may go on
      select f.*, f.n = (select s.rows from share s) as is_edge, bool_or(f.n = (select s.rows from share s))
        over (order by f.priority, f.eligible_at, f.id rows between unbounded preceding and 1 preceding) as is_behind
      from found f
    ), page as materialized (
      select m.* from merged m where m.is_behind is not true limit v_page
    ), marked as (
      -- is its key at hand?
      select p.*, p.partition_key is null or pg_try_advisory_xact_lock(key_lock(p.partition_key)) as mine
      from page p
    )
    select array_agg(m.id) filter (where m.mine), count(*), count(*) filter (where not m.mine), coalesce(bool_or(m.is_edge), false),
      (array_agg(m.priority))[count(*)], (array_agg(m.eligible_at))[count(*)], (array_agg(m.id))[count(*)],
      (select array_agg(distinct l.o) from level l where l.at < 'infinity'),
      case when cardinality(p_names) > c_many then (select array_agg(distinct l.o) from level l where l.at <= v_now) end
    into v_ids, v_page_rows, v_one, v_is_left, v_last_priority, v_last_at, v_last_id, v_one_lines, v_busy
    from marked m;    -- in order, as the page is: the last is the last
    if v_lowest = -32769 then    -- the first page of a look: of all priorities
      v_lines := v_one_lines;
      v_busy_lines := v_busy;
    end if;
    v_contended := v_contended or v_one > 0;
    v_passed := v_passed + v_one;
    v_is_left := v_is_left or v_page_rows = v_page;
    v_examined := 0;
    v_keys := null;
    v_limited := false;

    v_block := greatest(p_limit - v_found, v_block_min);
    if v_ids is not null then
      -- lock, bounded by count (and by bytes, below: compressed values are measured, others bounded by their stored size);
      -- by primary key: a plain predicate on status in there would lure the planner to runs_claim. With it, what another has claimed
      -- or blocked meanwhile is passed over and not locked, which would keep its commit waiting, or who frees its key from
      -- letting it in. The aggregates get the rows in the order of v_ids: a lateral join has no other, and none of them sorts
      -- (a DISTINCT would, for all).
      with locked as materialized (
        select l.* from unnest(v_ids) c(id)
        cross join lateral (
          select r.id, r.priority, r.eligible_at, r.status, r.hold, r.partition_key, r.rate_limit, r.kind,
            case when pg_column_compression(coalesce(r.state, r.input)) is null then pg_column_size(coalesce(r.state, r.input))
              else octet_length(coalesce(r.state, r.input)::text) end as bytes
          from runs r where r.id = c.id and (r.status in ('runnable', 'awaiting_signal') and r.hold = 0) is true
          limit 1 for no key update skip locked) l
        where l.status in ('runnable', 'awaiting_signal') and l.hold = 0 and l.eligible_at <= v_now
        limit v_block)
      select array_agg(l.id), array_agg(l.bytes), coalesce(sum(l.bytes), 0), count(*),
        array_agg(l.partition_key) filter (where l.partition_key is not null),
        coalesce(bool_or(l.rate_limit is not null), false), coalesce(bool_or(l.kind = 'workflow' and l.status = 'awaiting_signal'), false),
        min(l.priority), min(l.eligible_at)
      into v_ids, v_sizes, v_page_bytes, v_examined, v_keys, v_limited, v_resumed, v_first_priority, v_first_at
      from locked l;
      if v_page_bytes > c_bytes / 64 then
        -- as text it may be much more (a number such as 1e308 is short as it is stored): these are worth a look
        select array_agg(t.bytes order by u.o), sum(t.bytes) into v_sizes, v_page_bytes from unnest(v_ids) with ordinality u(id, o)
        cross join lateral (select octet_length(coalesce(r.state, r.input)::text) as bytes
          from runs r where r.id = u.id limit 1) t;
      end if;
      v_is_full := v_bytes + v_page_bytes > c_bytes and v_found + v_examined > 1;
      if v_is_full then
        -- as many as fit, and at least one in all
        select coalesce(max(f.o) filter (where v_bytes + f.upto <= c_bytes), 0) into v_one
          from (select u.o, sum(u.bytes) over (order by u.o) as upto from unnest(v_sizes) with ordinality u(bytes, o)) f;
        v_ids := nullif(v_ids[1 : greatest(v_one, case when v_found = 0 then 1 else 0 end)], '{}');
        v_page_bytes := (select sum(u.bytes) from unnest(v_sizes[1 : cardinality(v_ids)]) u(bytes));
      end if;
    end if;

    if (v_keys is not null or v_limited) and v_examined = v_block then
      -- some may be refused while the page has more: look on behind what was examined
      v_is_left := true;
      select r.priority, r.eligible_at, r.id into v_last_priority, v_last_at, v_last_id
        from runs r where r.id = v_ids[cardinality(v_ids)];
    end if;
    if v_keys is not null then
      v_keys := array(select distinct u.key from unnest(v_keys) u(key));
      select k.allowed, k.contended into v_refused from claim_keyed(v_ids, v_keys, v_now) k;
      v_ids := nullif(v_refused.allowed, '{}');
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
      v_block_min := 200;    -- a crowd that may not be claimed: look at more of it at once
    end if;
    if cardinality(v_ids) > p_limit - v_found then
      v_ids := v_ids[1 : p_limit - v_found];
    end if;

    if v_ids is not null then
      -- for an inbox, or for a journal and the names in an inbox each, within what is left
      v_inline := greatest(least(262144, c_inline / p_limit, (c_bytes - v_bytes - v_page_bytes) / (2 * cardinality(v_ids))), 0);
      if v_resumed then
        perform end_lone_wait(r.id, r.awaits, null, v_now) from unnest(v_ids) u(id)
        cross join lateral (select t.id, t.awaits, t.status, t.kind from runs t where t.id = u.id limit 1) r
        where r.status = 'awaiting_signal' and r.kind = 'workflow';
      end if;
      return query select c.*, null::text from take_claims(v_ids, p_worker, p_claim_id, v_now, v_inline, 0, 'settled') c;
      get diagnostics v_page_rows = row_count;
      v_found := v_found + v_page_rows;
      v_bytes := v_bytes + v_page_bytes + 2 * v_inline * cardinality(v_ids);
      if v_page_rows < cardinality(v_ids) then
        foreach v_one in array v_ids loop
          return query select c.*, null::text from claim_entering_scope(v_one, p_worker, p_claim_id, v_now, v_inline) c;
          get diagnostics v_page_rows = row_count;
          v_found := v_found + v_page_rows;
        end loop;
      end if;
      v_floor := coalesce(v_floor, jsonb_build_array(v_first_priority, to_us(v_first_at)));
    end if;

    exit when v_found >= p_limit or v_is_full;
    if v_is_left and v_passed < c_passed then
      v_lowest := v_last_priority - 1; v_is_bound := true;
      v_bound_priority := v_last_priority; v_bound_at := v_last_at; v_bound_id := v_last_id;
      -- each key of a page is locked until the end: of few runs more than are wanted
      v_page := case when v_keys is null and not v_contended then least(c_passed, greatest(100, 4 * v_page)) else greatest(200, p_limit - v_found) end;
    elsif not v_is_left and v_bounded and not p_bounded then
      v_lowest := -32769; v_is_bound := false; v_bound_priority := 32768; v_bounded := false; v_page := p_limit;
    else
      v_is_stopped := v_is_left;
      exit;
    end if;
  end loop;

  if v_is_stopped then
    -- the next call looks behind them; after a look at the whole queue the mark of the caller stays
    if v_floor is null and v_bounded = (p_floor_priority is not null) then
      v_floor := jsonb_build_array(v_last_priority, to_us(v_last_at));
    end if;
  elsif v_found < p_limit and v_is_full is not true and v_lines is not null then
    -- bounded: of the priority of the floor alone, since entries of ended runs may be before it
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
    v_due_ms := least(v_due_ms, 5);    -- another transaction is deciding about some: look again soon
  end if;
  meta := jsonb_build_object('floor', v_floor, 'due_ms', v_due_ms, 'busy', v_busy_lines, 'throttled', v_throttled,
    'more', v_found >= p_limit or v_is_full is true or v_is_stopped and (v_found > 0 or v_is_decided))::text;
  return next;
end $f$;
