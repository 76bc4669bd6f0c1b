-- pawl: table; grant select, insert, update
-- Rate limits: `allowed` tokens per `period`, at most `burst` at once. The last writer wins.
create table limits (
  name       text collate "C"     primary key,
  allowed    double precision not null check (allowed > 0),
  period     interval not null check (period > interval '0'),
  burst      double precision not null check (burst > 0),
  changed_at timestamptz not null,                       -- when it last began to let runs through sooner
  changes    int not null default 0,                     -- how often it did: promises of buckets from before do not count
  forward    jsonb                                       -- how far bring_forward has come; null: nothing is to be brought forward
);
