-- pawl: table; grant select, insert, update, delete
-- Schedules: each starts a run at every tick of a cron expression or an interval.
create table schedules (
  name         text collate "C" primary key,
  run          jsonb not null,                           -- the run to start, as new_runs takes it
  cron         text,                                     -- either this or every_ms
  every_ms     bigint check (every_ms > 0),
  time_zone    text not null,
  jitter_ms    bigint not null,
  offset_ms    bigint not null,                          -- how long after each tick it fires
  overlap      text not null check (overlap in ('skip', 'allow', 'cancel')),
  catch_up     text not null check (catch_up in ('last', 'none', 'all')),
  given_paused boolean,                                  -- paused, as the last set gave it; null: not
  set_at       timestamptz not null,                     -- last change by set
  paused_at    timestamptz,                              -- null: not paused
  next_at      timestamptz not null,                     -- the next tick
  due_at       timestamptz,                              -- when it fires: next_at + offset_ms; null: paused
  last_at      timestamptz,                              -- the last tick that started a run
  last_run_id  bigint,
  skipped_at   timestamptz,                              -- the last tick that overlap skipped
  failures     int not null default 0,                   -- ticks in a row that could not start a run
  error        jsonb,                                    -- of the last of them: code, message
  check ((cron is null) <> (every_ms is null))
);

create index schedules_due on schedules (due_at) where due_at is not null;
