-- pawl: table; grant select, insert, update
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
