-- pawl: table; grant select, insert, update
-- Rate limits: `allowed` tokens per `period`, at most `burst` at once. The last writer wins.
create table limits (
  name       text collate "C"     primary key,
  allowed    double precision not null check (allowed > 0),
  period     interval not null check (period > interval '0'),
  burst      double precision not null check (burst > 0),
  changed_at timestamptz not null,                       -- last change that lets runs start sooner
  changes    int not null default 0,                     -- number of these; voids older promises
  forward    jsonb                                       -- progress of bring_forward; null: done
);
