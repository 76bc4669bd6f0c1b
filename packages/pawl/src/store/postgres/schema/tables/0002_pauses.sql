-- pawl: table; grant select, insert, update, delete
-- Paused queues and definitions. Almost always empty: every claim, commit and record looks here
-- once. A paused run has no row here; its own row says so.
create table pauses (
  scope      text collate "C" not null check (scope in ('queue', 'definition')),
  name       text collate "C" not null,
  version    int         not null default 0,             -- of a definition; 0: every version
  paused_by  text        not null,
  reason     text,
  paused_at  timestamptz not null,
  primary key (scope, name, version)
);

-- {by, reason, since} while bit 16 of hold is set
alter table runs add column paused jsonb;
-- list and gauges: the paused runs
create index runs_paused on runs (id) where (hold & 16) <> 0;
