-- pawl: table
-- Version 2: deadlines, debounce and correlation keys.
alter table definitions add column timeout interval;      -- the default of deadlines

-- fail_overdue: live runs by their deadline
create index runs_deadline on runs (deadline_at)
  where deadline_at is not null and case when status in ('done', 'failed', 'cancelled') then false else true end;
-- invariant: one run per name and debounce key that has not begun. The first claim clears the key.
create unique index runs_debounce on runs (debounce_key, name) where debounce_key is not null and status = 'runnable';
-- signal_correlated, find: the runs of a correlation key, live ones apart
create index runs_correlated on runs (correlation_key, (case when status in ('done', 'failed', 'cancelled') then 1 else 0 end), id)
  where correlation_key is not null;

-- A run that fails by its deadline while it is executed keeps its holder until the worker releases
-- it, as a cancelled one does. Not validated: the old rule is stricter, so that every row passes.
alter table runs drop constraint runs_holder;
alter table runs add constraint runs_holder check (locked_by is null or status in ('executing', 'cancelled', 'failed')) not valid;
