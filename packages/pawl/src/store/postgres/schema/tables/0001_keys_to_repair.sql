-- pawl: table; grant select, insert, update, delete
-- Freed keys whose first run could not be let in, because another transaction had the key or that
-- run locked. repair_keys lets them in, however many other keys have blocked runs. A key may appear
-- twice.
create table keys_to_repair (
  id            bigint generated always as identity primary key,
  partition_key text collate "C" not null
);
