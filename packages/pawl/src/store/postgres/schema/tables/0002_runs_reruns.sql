-- pawl: table
-- Version 2: the runs that repeat a run.

-- get: the newest rerun of a run. Written only when a rerun starts.
create index runs_reruns on runs (rerun_of, id) where rerun_of is not null;
