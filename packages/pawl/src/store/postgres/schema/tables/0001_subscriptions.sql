-- pawl: table; grant select, insert, update, delete
create table subscriptions (
  id          bigint generated always as identity primary key,
  pattern     text collate "C"        not null,
  target      jsonb       not null,
  secret      text,
  owner       text collate "C",                          -- the token that made it; null: somebody without one
  inserted_at timestamptz not null
);

-- invariant: one subscription per pattern and target
create unique index subscriptions_once on subscriptions (pattern, target);
