-- pawl: table; grant select, insert, update, delete
-- Paused queues and definitions. Almost always empty: every claim, commit and record looks here
-- once. A paused run has no row here; extras.paused says who paused it.
create table pauses (
  scope      text collate "C" not null check (scope in ('queue', 'definition')),
  name       text collate "C" not null,
  version    int         not null default 0,             -- of a definition; 0: every version
  paused_by  text        not null,
  reason     text,
  paused_at  timestamptz not null,
  primary key (scope, name, version)
);
