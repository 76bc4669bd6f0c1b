-- pawl: table; grant select, update
-- One row for the whole schema.
create table settings (
  only_row          boolean     primary key default true check (only_row),
  identity          uuid        not null,                -- the same in every copy until adopted
  home              jsonb       not null,                -- location() at migrate or adopt
  held              boolean     not null default false,  -- no claims, no deletions
  held_copy         text,                                -- name of a copy to hold from its start
  retention_ceiling interval    not null default '365 days',
  beats_since       timestamptz not null,                -- since then no gap of half a lease
  timeline          text        not null                 -- the server's, at begin_timeline
);
