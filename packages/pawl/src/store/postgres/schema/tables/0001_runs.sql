-- pawl: table; grant select, insert, update, delete
-- The phases of a run. Adding a value later is a migration of its own (an enum value cannot be used in the
-- transaction that adds it).
create type run_status as enum (
  'runnable', 'executing', 'awaiting_signal', 'awaiting_children', 'done', 'failed', 'cancelled');

-- A run's id is nextval << 6: the low six bits are kept for the number of a shard. Ids of messages
-- begin at first_message_id().
create sequence run_ids as bigint cache 1;

-- One row is one run. Wide columns last; no foreign keys and no triggers on hot tables.
-- What is indexed compares by bytes (collate "C"): cheaper, and a new version of the system's locales breaks no index.
create table runs (
  id                bigint      not null,
  status            run_status  not null,
  hold              smallint    not null default 0,      -- bits: 1 blocked by its key, 2 its definition is not registered yet, 4 held, 8 set aside; claimable at 0
  priority          smallint,                            -- null, like queue and retention: not given, and the definition not known yet
  version           int         not null default 1,
  attempt           int         not null default 0,
  crashes           int         not null default 0,      -- crashes since the last progress
  crash_seq         int         not null default 0,      -- the journal's highest seq at the last crash
  timed_out         boolean     not null default false,  -- the wait that led to this step ended by its timeout
  throttled         boolean     not null default false,  -- put off to eligible_at by its rate limit
  turn              bigint      not null default 0,      -- 0 at claim, + 1 per applied transition of that claim
  claim_id          bigint,                              -- random, made by the caller per claim call; outlives the claim
  locked_by         text collate "C",                                -- the worker that holds the claim; its end clears this column only
  inbox_seq         int         not null default 0,      -- seq of the last signal delivered
  shown             int[],                               -- seqs already in ctx.awaited when this wait began
  eligible_at       timestamptz not null,                -- when it may be claimed; the deadline while awaiting; 'infinity' if none
  lease_expires_at  timestamptz,                         -- queue receipts only; workers hold their claims by their own row
  inserted_at       timestamptz not null,
  completed_at      timestamptz,
  expires_at        timestamptz,
  retention         interval,
  queue             text collate "C",                                -- null: where its definition says, once a worker registers it
  kind              text,                                -- null: not known before a worker registers the definition
  name              text collate "C"        not null,
  step              text,                                -- null until the first claim takes the initial step
  awaits            jsonb,                               -- {names, match, since, upto}, or {children, held, since} of a spawn; until the next progress
  partition_key     text collate "C",
  rate_limit        text collate "C",                                -- limit, or limit:key; until the next progress
  weight            int,
  idempotency_key   text collate "C",
  unique_key        bytea,
  unique_scope      run_status[],
  unique_guard      bytea generated always as (
                      case when unique_key is not null and status = any (unique_scope) then unique_key end) stored,
  parent_id         bigint,
  child_of          int,                                 -- the number of the parent's spawn that made it
  position          int,                                 -- its place in that spawn
  spawn             int         not null default 0,      -- number of the run's own last spawn
  children_pending  int         not null default 0,      -- children of that spawn that are not terminal
  input             jsonb       not null,
  state             jsonb,                               -- null until a transition writes it; then only when it changes
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

-- claim: what may be claimed, by definition, in claim order. A CASE, because a plain condition on status would let the planner serve
-- it by runs_listing, if it had once believed the table empty.
create index runs_claim on runs (queue, name, version, priority, eligible_at, id)
  where case when status in ('runnable', 'awaiting_signal') then hold = 0 else false end;
-- reap, beat: what a worker holds; of that, what was cancelled, and what it has claimed since a moment (claim ids of a process
-- grow with time). Each is a range of its own: while an old transaction keeps the entries of ended claims, a beat must not
-- walk over them all.
create index runs_holders on runs (locked_by, status, claim_id) where locked_by is not null;
-- expired receipts of queue messages
create index runs_receipts on runs (lease_expires_at) where lease_expires_at is not null;
-- invariant: one run per occupied unique key
create unique index runs_unique on runs (unique_guard) where unique_guard is not null;
-- invariant: one run per definition name and idempotency key (the key first, so that it is found without the name)
create unique index runs_idempotency on runs (idempotency_key, name) where idempotency_key is not null;
-- invariant: one holder per partition key
create unique index runs_active_key on runs (partition_key)
  where partition_key is not null and (locked_by is not null or lease_expires_at is not null);
-- who is first in line for a partition key, by definition: all that could be claimed, blocked or not
create index runs_keyed on runs (partition_key, queue, name, version, priority, eligible_at, id)
  where partition_key is not null and case when status in ('runnable', 'awaiting_signal') then (hold & 14) = 0 else false end;
-- repair: keys that have blocked runs
create index runs_blocked on runs (partition_key, id) where (hold & 1) <> 0;
-- runs that their rate limit has put off, in the order in which their tokens will be there
create index runs_throttled on runs (rate_limit, eligible_at, id) where throttled;
-- runs that wait for their definition to be registered, and those that were set aside because they cannot be claimed
create index runs_unplaced on runs (name, version, id) where (hold & 10) <> 0;
-- retention
create index runs_expiry on runs (expires_at) where expires_at is not null;
-- children of one spawn, in order
create index runs_children on runs (parent_id, child_of, position) where parent_id is not null;
-- listing by name, newest first. Not of executing runs: they are few, runs_holders has them, and a claim need not
-- write this index. Not of messages (20_send), which are not listed.
create index runs_listing on runs (name, status, inserted_at desc, id desc) where status <> 'executing' and id < 4611686018427387904;
-- listing of failures by their code, newest first: written only when a run fails
create index runs_failures on runs ((coalesce(error ->> 'code', error ->> 'name') collate "C"), inserted_at desc, id desc)
  where status = 'failed' and id < 4611686018427387904;

-- A run as people see it: what get and list answer.
create type run_record as (
  id bigint, name text, version int, kind text, status run_status, step text, attempt int, queue text, priority smallint,
  input text, state text, result text, error text, parent_id bigint, idempotency_key text,
  inserted_at text, completed_at text, eligible_at text, expires_at text);

-- A run that has just been claimed: what a worker needs to execute it (take_claims).
create type claimed_run as (
  id text, name text, version int, step text, priority smallint, attempt int, crashes int, parent_id text, partition_key text,
  timed_out boolean, children int, inbox_seq int, inbox text, input text, state text, journal text, waiting text,
  unique_lost boolean, started_ms double precision, trace text);
