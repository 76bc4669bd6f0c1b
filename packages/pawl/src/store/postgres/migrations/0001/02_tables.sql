-- One row is one run. Wide columns last; no foreign keys and no triggers on hot tables.
-- What is indexed compares by bytes (collate "C"): cheaper, and a new version of the system's locales breaks no index.
create table runs (
  shard             smallint    not null,
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
  primary key (shard, id),
  constraint runs_placed check ((hold & 2) <> 0 or (queue is not null and priority is not null and retention is not null)),
  constraint runs_holder check (locked_by is null or status in ('executing', 'cancelled'))
) with (
  fillfactor = 60,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
  autovacuum_vacuum_cost_delay = 0
);

-- A run's inbox. A consumed signal with a dedup key stays as a row without payload.
create table signals (
  shard       smallint    not null,
  run_id      bigint      not null,
  seq         int         not null,
  name        text        not null,
  payload     jsonb,
  dedup_key   text collate "C",
  inserted_at timestamptz not null,
  consumed_at timestamptz,
  primary key (shard, run_id, seq)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

-- A workflow run's journal. A row is pending until completed_at; seq is the order of delivery to the body.
create table steps (
  shard        smallint    not null,
  run_id       bigint      not null,
  name         text collate "C"        not null,
  kind         text        not null,
  seq          int,
  attempt      int         not null default 0,
  child_id     bigint,                                   -- the run that an invoke has started
  due_at       timestamptz,
  output       jsonb,
  error        jsonb,
  started_at   timestamptz not null,
  completed_at timestamptz,
  primary key (shard, run_id, name)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

-- What workers have registered: the defaults for starts by name.
create table definitions (
  name       text collate "C"        not null,
  version    int         not null,
  kind       text        not null,
  queue      text        not null,
  priority   smallint    not null,
  retention  interval    not null,
  registered timestamptz not null,
  primary key (name, version)
);

-- One row per worker: the lease of all its claims. A row is deleted only when no run names it.
create table workers (
  id            text collate "C"        primary key,
  lease         interval    not null,
  serves        text[]      not null,                    -- name@version
  queues        text[]      not null,
  info          jsonb       not null default '{}',
  registered_at timestamptz not null,
  seen_at       timestamptz not null,
  owner         text                                     -- the name of the token that registered it (owned_shard); null: none did
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

-- Rate limits: `allowed` tokens per `period`, at most `burst` at once. The last writer wins.
create table limits (
  name       text collate "C"     primary key,
  allowed    double precision not null check (allowed > 0),
  period     interval not null check (period > interval '0'),
  burst      double precision not null check (burst > 0),
  changed_at timestamptz not null,                       -- when it last began to let runs through sooner
  changes    int not null default 0,                     -- how often it did: promises of buckets from before do not count
  forward    jsonb                                       -- how far bring_forward has come; null: nothing is to be brought forward
);

-- The tokens of a limit, one bucket per key. Runs that found none are put off one behind the other, the last of them
-- to promised_at: who comes later queues behind it.
create table buckets (
  shard       smallint not null,
  name        text collate "C"     not null,
  key         text collate "C"     not null default '',
  tokens      double precision not null,
  updated_at  timestamptz not null,
  promised_at timestamptz not null,
  changes     int not null default 0,                    -- those of its limit when it promised that
  primary key (shard, name, key)
) with (fillfactor = 50);

-- Keys whose first run could not be let in when they were freed, because somebody had the key or that run locked: the
-- repair does it, however many other keys have blocked runs. A key may be here twice.
create table left_keys (
  id            bigint generated always as identity primary key,
  shard         smallint not null,
  partition_key text collate "C" not null
);

create table subscriptions (
  id          bigint generated always as identity primary key,
  pattern     text collate "C"        not null,
  target      jsonb       not null,
  secret      text,
  owner       text collate "C",                          -- the token that made it; null: somebody without one
  inserted_at timestamptz not null
);

-- One row for the whole schema.
create table settings (
  only_row          boolean     primary key default true check (only_row),
  identity          uuid        not null,                -- the same in every copy, until that is adopted
  home              jsonb       not null,                -- where it was migrated or adopted (place); anywhere else it is a copy
  held              boolean     not null default false,  -- nothing of it is claimed, and nothing deleted
  held_copy         text,                                -- the name of a copy that is to be held from its first moment on
  shards            smallint    not null default 1,
  retention_ceiling interval    not null default '365 days',
  beats_since       timestamptz not null,                -- since when beats have come without a gap of half a lease
  timeline          text        not null                 -- of the server, as of the claims on workflows (begin_timeline)
);
insert into settings (identity, home, beats_since, timeline) values (gen_random_uuid(), place(), clock_timestamp(), timeline());
