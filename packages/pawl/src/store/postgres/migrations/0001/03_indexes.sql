-- Each index backs one operation or one invariant (ARCHITECTURE.md lists them).

-- claim: what may be claimed, by definition, in claim order. A CASE, because a plain condition on status would let the planner serve
-- it by runs_listing, if it had once believed the table empty.
create index runs_claim on runs (shard, queue, name, version, priority, eligible_at, id)
  where case when status in ('runnable', 'awaiting_signal') then hold = 0 else false end;
-- reap, beat: what a worker holds; of that, what was cancelled, and what it has claimed since a moment (claim ids of a process
-- grow with time). Each is a range of its own: while an old transaction keeps the entries of ended claims, a beat must not
-- walk over them all.
create index runs_holders on runs (shard, locked_by, status, claim_id) where locked_by is not null;
-- expired receipts of queue messages
create index runs_receipts on runs (shard, lease_expires_at) where lease_expires_at is not null;
-- invariant: one run per occupied unique key
create unique index runs_unique on runs (shard, unique_guard) where unique_guard is not null;
-- invariant: one run per definition name and idempotency key (the key first, so that it is found without the name)
create unique index runs_idempotency on runs (shard, idempotency_key, name) where idempotency_key is not null;
-- invariant: one holder per partition key
create unique index runs_active_key on runs (shard, partition_key)
  where partition_key is not null and (locked_by is not null or lease_expires_at is not null);
-- who is first in line for a partition key, by definition: all that could be claimed, blocked or not
create index runs_keyed on runs (shard, partition_key, queue, name, version, priority, eligible_at, id)
  where partition_key is not null and case when status in ('runnable', 'awaiting_signal') then (hold & 14) = 0 else false end;
-- repair: keys that have blocked runs
create index runs_blocked on runs (shard, partition_key, id) where (hold & 1) <> 0;
-- runs that their rate limit has put off, in the order in which their tokens will be there
create index runs_throttled on runs (shard, rate_limit, eligible_at, id) where throttled;
-- runs that wait for their definition to be registered, and those that were set aside because they cannot be claimed
create index runs_unplaced on runs (shard, name, version, id) where (hold & 10) <> 0;
-- retention
create index runs_expiry on runs (shard, expires_at) where expires_at is not null;
-- children of one spawn, in order
create index runs_children on runs (shard, parent_id, child_of, position) where parent_id is not null;
-- listing by name, newest first. Not of executing runs: they are few, runs_holders has them, and a claim need not
-- write this index. Not of messages (20_send), which are not listed.
create index runs_listing on runs (name, status, inserted_at desc, id desc) where status <> 'executing' and shard >= 0::smallint;
-- listing of failures by their code, newest first: written only when a run fails
create index runs_failures on runs (shard, (coalesce(error ->> 'code', error ->> 'name') collate "C"), inserted_at desc, id desc)
  where status = 'failed' and shard >= 0::smallint;
-- a run's inbox, however many consumed signals with dedup keys it has
create index signals_inbox on signals (shard, run_id, seq) where consumed_at is null;
-- redelivery of a signal is a no-op
create unique index signals_dedup on signals (shard, run_id, dedup_key) where dedup_key is not null;
-- invariant: one subscription per pattern and target
create unique index subscriptions_once on subscriptions (pattern, target);
