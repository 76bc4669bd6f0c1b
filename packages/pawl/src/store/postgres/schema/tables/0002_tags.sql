-- pawl: table; grant select, insert, delete
-- The labels of runs. Runs that have any are marked (runs.tagged), so that no other is looked up.
create table tags (
  run_id  bigint            not null,
  name    text collate "C"  not null,
  value   text collate "C"  not null,
  primary key (run_id, name)
);

-- list by tag, newest first
create index tags_listing on tags (name, value, run_id desc);
