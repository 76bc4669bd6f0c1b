/**
 * A private database on which sequences run: its clock moves only by command, it can be looked at and emptied in one call each.
 * Beside the workers of the model it has a keeper, which serves everything and claims nothing: without any live worker
 * the repair would take runs out of the line for their keys, which the model does not know.
 */

import { type TestDatabase, testDatabase } from "../../support/database.js";
import { served } from "../runs/claim.js";

/** The workers that a sequence begins with. */
export const workers = ["a", "b"];

const leaseMs = 3_600_000;

/** A run as it is stored. Ids count from 1; times are milliseconds on the clock, null: never. */
export interface StoredRow {
  readonly hold: number;
  readonly [column: string]: unknown;
  readonly id: number;
}

export interface Stored {
  readonly runs: readonly StoredRow[];
  readonly workers: readonly (readonly [id: string, isLive: boolean])[];
  /** Consumed signals that were kept although they have no dedup key, or kept with their payload. */
  readonly leftovers: number;
}

export interface SequenceDatabase extends TestDatabase {
  reset(): Promise<void>;
  look(): Promise<Stored>;
  register(worker: string): Promise<void>;
}

export const sequenceDatabase = async (): Promise<SequenceDatabase> => {
  const database = await testDatabase();
  await database.sql(setUp);
  const register = (worker: string): Promise<void> =>
    database.store.register({
      workerId: worker,
      leaseMs,
      queues: ["default", "other"],
      info: "{}",
      definitions,
    });
  return {
    ...database,
    register,
    reset: async () => {
      await database.sql("select public.empty()");
    },
    look: async () => {
      const [row] = await database.sql<{ look: Stored }>("select public.look()");
      return row!.look;
    },
  };
};

const definitions = served.map((name) => ({
  name,
  version: 1,
  kind: "machine",
  queue: "default",
  priority: 0,
  retentionMs: 1,
}));

/** Nothing here is to outlive a crash, so no commit waits for the disk. */
const setUp = `
  create table public.clock (ms bigint not null);
  insert into public.clock values (0);
  create or replace function pawl.clock() returns timestamptz language sql volatile as
    $$ select timestamptz 'epoch' + ms * interval '1 millisecond' from public.clock $$;
  create or replace function pawl.require_durable_commit() returns void language plpgsql as $$
    begin perform set_config('synchronous_commit', 'off', true); end $$;

  create function public.empty() returns void language plpgsql set synchronous_commit = off as $$
  begin
    delete from pawl.runs; delete from pawl.signals; delete from pawl.workers;
    perform setval('pawl.run_ids', 1, false);
    update public.clock set ms = 0;
    insert into pawl.workers (id, lease, serves, queues, registered_at, seen_at)
      select w, '1 hour', '{${served.map((name) => `${name}@1`).join()}}', '{default,other}', clock_timestamp(), clock_timestamp()
      from unnest(array['keeper', '${workers.join("', '")}']) w;
    update pawl.settings set beats_since = clock_timestamp() - interval '1 day';
  end $$;

  create function public.ms(p_at timestamptz) returns bigint language sql immutable as
    $$ select case when isfinite(p_at) then round(extract(epoch from p_at) * 1000)::bigint end $$;

  create function public.look() returns json language plpgsql set search_path = pawl, public as $$
  begin
    return json_build_object(
      'runs', (select coalesce(json_agg(json_build_object(
        'id', r.id >> 6, 'status', r.status, 'name', r.name, 'queue', r.queue, 'priority', r.priority, 'partitionKey', r.partition_key,
        'step', r.step, 'attempt', r.attempt, 'crashes', r.crashes, 'eligibleAt', ms(r.eligible_at), 'holder', r.locked_by,
        'claimId', r.claim_id::text, 'turn', r.turn, 'names', r.awaits -> 'names', 'match', r.awaits -> 'match', 'upTo', r.awaits -> 'upto',
        'children', case when r.awaits ? 'children' and r.status <> 'cancelled' then (
          select json_agg(c.id >> 6 order by c.position) from runs c where c.parent_id = r.id and c.child_of = r.spawn) end,
        'shown', coalesce(r.shown, '{}'), 'timedOut', r.timed_out,
        'inbox', (select json_agg(json_build_object('seq', s.seq, 'name', s.name, 'payload', s.payload) order by s.seq)
          from signals s where s.run_id = r.id and s.consumed_at is null),
        'inboxSeq', r.inbox_seq,
        'dedupKeys', array(select s.dedup_key from signals s where s.run_id = r.id and s.dedup_key is not null order by 1),
        'parentId', r.parent_id >> 6, 'childrenPending', r.children_pending, 'expiresAt', ms(r.expires_at),
        'hold', r.hold) order by r.id), '[]') from runs r),
      'workers', (select coalesce(json_agg(json_build_array(w.id, w.seen_at + w.lease > clock_timestamp()) order by w.id), '[]')
        from workers w where w.id <> 'keeper'),
      'leftovers', (select count(*) from signals s
        where s.consumed_at is not null and (s.dedup_key is null or s.payload is not null)));
  end $$;
`;
