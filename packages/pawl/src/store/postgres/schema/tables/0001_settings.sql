-- pawl: table; grant select, update
-- One row for the whole schema.
create table settings (
  only_row          boolean     primary key default true check (only_row),
  identity          uuid        not null,                -- the same in every copy, until that is adopted
  home              jsonb       not null,                -- where it was migrated or adopted (place); anywhere else it is a copy
  held              boolean     not null default false,  -- nothing of it is claimed, and nothing deleted
  held_copy         text,                                -- the name of a copy that is to be held from its first moment on
  retention_ceiling interval    not null default '365 days',
  beats_since       timestamptz not null,                -- since when beats have come without a gap of half a lease
  timeline          text        not null                 -- of the server, as of the claims on workflows (begin_timeline)
);
