-- pawl: table; grant select, insert, update, delete
-- The phases of a run. Adding a value later takes a migration of its own: an enum value cannot be
-- used in the transaction that adds it.
create type run_status as enum (
  'runnable', 'executing', 'awaiting_signal', 'awaiting_children', 'done', 'failed', 'cancelled');

-- A run's id is nextval << 6: the low six bits are kept for the number of a shard. Ids of messages
-- begin at first_message_id().
create sequence run_ids as bigint cache 1;

-- One row is one run or one message. Wide columns come last. Hot tables have no foreign keys and no
-- triggers. Indexed text compares by bytes (collate "C"): that is cheaper, and a new version of the
-- system's locales breaks no index.
create table runs (
  id                bigint      not null,
  status            run_status  not null,
  -- Bits of hold: 1 blocked by its key, 2 its definition is not registered yet, 4 held, 8 set
  -- aside. A run is claimable at 0.
  hold              smallint    not null default 0,
  priority          smallint,                            -- null until its definition is registered
  version           int         not null default 1,
  attempt           int         not null default 0,
  crashes           int         not null default 0,      -- crashes since the last progress
  crash_seq         int         not null default 0,      -- highest journal seq at the last crash
  timed_out         boolean     not null default false,  -- its last wait ended by the timeout
  throttled         boolean     not null default false,  -- put off to eligible_at by its rate limit
  turn              bigint      not null default 0,      -- 0 at claim, + 1 per transition
  claim_id          bigint,                              -- random, one per claim; outlives it
  locked_by         text collate "C",                    -- the holder; a claim's end clears only it
  inbox_seq         int         not null default 0,      -- seq of the last signal delivered
  shown             int[],                               -- seqs in ctx.awaited before this wait
  -- when it may be claimed; the deadline while awaiting; 'infinity' if none
  eligible_at       timestamptz not null,
  lease_expires_at  timestamptz,                         -- of a message; a worker's is in workers
  inserted_at       timestamptz not null,
  completed_at      timestamptz,
  expires_at        timestamptz,
  retention         interval,
  queue             text collate "C",                    -- null until its definition is registered
  kind              text,                                -- null until its definition is registered
  name              text collate "C"        not null,
  step              text,                                -- null until the initial step is claimed
  -- {names, match, since, upto}, or {children, held, since} of a spawn; until the next progress
  awaits            jsonb,
  partition_key     text collate "C",
  rate_limit        text collate "C",                    -- limit or limit:key, until next progress
  weight            int,
  idempotency_key   text collate "C",
  unique_key        bytea,
  unique_scope      run_status[],
  unique_guard      bytea generated always as (
                      case when unique_key is not null and status = any (unique_scope) then unique_key end) stored,
  parent_id         bigint,
  child_of          int,                                 -- number of the parent's spawn
  position          int,                                 -- its place in that spawn
  spawn             int         not null default 0,      -- number of the run's own last spawn
  children_pending  int         not null default 0,      -- unfinished children of that spawn
  input             jsonb       not null,
  state             jsonb,                               -- null until first written; then on change
  result            jsonb,
  error             jsonb,
  trace             text,
  primary key (id),
  constraint runs_placed check ((hold & 2) <> 0 or (queue is not null and priority is not null and retention is not null)),
  constraint runs_holder check (locked_by is null or status in ('executing', 'cancelled'))
) with (
  fillfactor = 60,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
  autovacuum_vacuum_cost_delay = 0
);

-- Each index backs one operation or one invariant; ARCHITECTURE.md lists them.

-- claim: claimable runs by definition, in claim order. The condition is a CASE: with a plain
-- condition on status, a planner that once believed the table empty would use runs_listing.
create index runs_claim on runs (queue, name, version, priority, eligible_at, id)
  where case when status in ('runnable', 'awaiting_signal') then hold = 0 else false end;
-- reap, beat: the claims of a worker, the cancelled ones among them, and those since a moment
-- (claim ids of a process grow with time). Each is a range of its own: while an old transaction
-- keeps the entries of ended claims, a beat must not walk over them all.
create index runs_holders on runs (locked_by, status, claim_id) where locked_by is not null;
-- expire: receipts of queue messages whose visibility has ended
create index runs_receipts on runs (lease_expires_at) where lease_expires_at is not null;
-- invariant: one run per occupied unique key
create unique index runs_unique on runs (unique_guard) where unique_guard is not null;
-- invariant: one run per definition name and idempotency key. The key comes first, so that a lookup
-- needs no name.
create unique index runs_idempotency on runs (idempotency_key, name) where idempotency_key is not null;
-- invariant: one holder per partition key
create unique index runs_active_key on runs (partition_key)
  where partition_key is not null and (locked_by is not null or lease_expires_at is not null);
-- first_of_key: the line for a partition key, by definition: all claimable runs, blocked or not
create index runs_keyed on runs (partition_key, queue, name, version, priority, eligible_at, id)
  where partition_key is not null and case when status in ('runnable', 'awaiting_signal') then (hold & 14) = 0 else false end;
-- repair: keys that have blocked runs
create index runs_blocked on runs (partition_key, id) where (hold & 1) <> 0;
-- runs that their rate limit has put off, in the order in which they get their tokens
create index runs_throttled on runs (rate_limit, eligible_at, id) where throttled;
-- runs that wait until a worker registers their definition, and runs set aside because claim failed
create index runs_unplaced on runs (name, version, id) where (hold & 10) <> 0;
-- sweep: terminal runs by the end of their retention
create index runs_expiry on runs (expires_at) where expires_at is not null;
-- children of one spawn, in order
create index runs_children on runs (parent_id, child_of, position) where parent_id is not null;
-- list by name, newest first. Leaves out executing runs: they are few, runs_holders has them, and
-- so a claim need not write this index. Leaves out messages, which no list shows.
create index runs_listing on runs (name, status, inserted_at desc, id desc) where status <> 'executing' and id < 4611686018427387904;
-- list of failures by error code, newest first. Written only when a run fails.
create index runs_failures on runs ((coalesce(error ->> 'code', error ->> 'name') collate "C"), inserted_at desc, id desc)
  where status = 'failed' and id < 4611686018427387904;

-- A run to start. Its input travels beside it, so that a large text is quoted once. `options` is a
-- JSON object for rare options: a later version reads more members without a new signature.
create type new_run as (
  name text, version int, kind text, queue text, priority smallint, step text, delay_ms bigint, at timestamptz, retention_ms bigint,
  idempotency_key text, unique_key bytea, unique_scope text, partition_key text, rate_limit text, weight int,
  parent_id bigint, child_of int, "position" int, trace text, direct boolean, options text);

-- A run as people see it: the answer of get and list. `extra` is a JSON object,
-- so that a later version can tell more.
create type run_record as (
  id bigint, name text, version int, kind text, status run_status, step text, attempt int, queue text, priority smallint,
  input text, state text, result text, error text, parent_id bigint, idempotency_key text,
  inserted_at text, completed_at text, eligible_at text, expires_at text, extra text);

-- A run that has just been claimed, with all that a worker needs to execute it (take_claims). `extra` is
-- a JSON object, as above.
create type claimed_run as (
  id text, name text, version int, step text, priority smallint, attempt int, crashes int, parent_id text, partition_key text,
  timed_out boolean, children int, inbox_seq int, inbox text, input text, state text, journal text, waiting text,
  unique_lost boolean, started_ms double precision, trace text, extra text);
