-- pawl: table
-- Version 2: columns of runs for operating, scheduling and flow control. All are null for a run
-- that uses none of it, so they cost no space.
alter table runs
  add column origin_id        bigint,                    -- the first run of a chain of reruns
  add column rerun_of         bigint,                    -- the run that this one repeats
  add column deadline_at      timestamptz,               -- past it a live run fails
  add column debounce_until   timestamptz,               -- the latest time that a debounce may move to
  add column slot             smallint,                  -- the slot of its concurrency limit that it holds
  add column tagged           boolean,                   -- it has rows in tags
  add column debounce_key     text collate "C",          -- until its first claim
  add column correlation_key  text collate "C",
  add column concurrency      text collate "C";          -- limit or limit:key

-- get: the newest rerun of a run. Written only when a rerun starts.
create index runs_reruns on runs (rerun_of, id) where rerun_of is not null;
