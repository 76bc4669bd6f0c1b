-- pawl: table; grant select, insert, update, delete
-- Keys whose first run could not be let in when they were freed, because somebody had the key or that run locked: the
-- repair does it, however many other keys have blocked runs. A key may be here twice.
create table left_keys (
  id            bigint generated always as identity primary key,
  partition_key text collate "C" not null
);
