/**
 * Where the fault tests take place: a Postgres server of its own that may be ended at any time, worker processes, a client under
 * load, the ledger of effects on another server, and the judgement at the end.
 */

import { type LocalPostgres, startLocalPostgres } from "@pawl/local-postgres";
import { migrate as migrateNow } from "pawl";
import pg from "pg";
import { afterAll, expect } from "vitest";
import { lastingPort } from "../../support/lasting-port.js";
import { until } from "../../support/until.js";
import { type Fleet, makeFleet, makeLedger } from "./fleet.js";
import { afterStop, endOf, type Evidence, type Invariant, invariants } from "./invariants.js";
import { Load } from "./load.js";
import { type Chance, makeChance } from "./seed.js";
import { sideTables } from "../programs/shapes.js";

export interface Arena {
  readonly server: LocalPostgres;
  readonly fleet: Fleet;
  readonly load: Load;
  readonly chance: Chance;
  /** Another server is the database under test from now on. */
  moveTo(url: string): void;
  /** SQL on the database under test, over a new connection; waits while nobody is there. */
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
  ledger: Evidence["ledger"];
  /** Resolves when nothing is open any more. */
  quiet(longestMs?: number): Promise<void>;
  /** Expects every invariant to hold, then deletes all that has ended, as retention does. */
  judgeAndForget(): Promise<void>;
  /** Stops the workers in peace and expects every invariant to hold. */
  judge(): Promise<void>;
}

const lookMs = 250;

/** What there is to know about runs that should have ended. */
const openRuns = `
  select r.id, r.name, r.status, r.hold, r.attempt, r.crashes, r.eligible_at - clock_timestamp() as due, r.awaits, r.inbox_seq, r.children_pending,
    r.partition_key, r.locked_by, clock_timestamp() - w.seen_at as seen, clock_timestamp() - s.beats_since as beats
  from runs r cross join settings s left join workers w on w.id = r.locked_by
  where r.completed_at is null order by r.id limit 10`;

/** What is still there after all that has ended was deleted. */
const leftOvers = `
  select 'run' as what, r.id, r.name, r.status::text, r.inserted_at, r.completed_at, r.expires_at from runs r
  union all select 'step', s.run_id, s.name, s.kind, null, s.completed_at, null from steps s
  union all select 'signal', s.run_id, s.name, null, s.inserted_at, s.consumed_at, null from signals s
  limit 20`;

export async function makeArena(
  options: {
    settings?: Record<string, string | number>;
    /** A data directory that stays. */
    directory?: string;
    /** The address that workers and the client use instead of the server's. */
    through?: (url: string, chance: Chance) => Promise<string>;
    /** Makes the schema; of another release, perhaps. */
    migrate?: (options: { url: string }) => Promise<unknown>;
  } = {},
): Promise<Arena> {
  const chance = makeChance();
  console.log(`seed ${chance.seed} (PAWL_SEED repeats it)`);
  const { settings = {}, directory, migrate = migrateNow } = options;
  const server = await startLocalPostgres({
    port: await lastingPort(),
    settings,
    ...(directory === undefined ? {} : { directory }),
  });
  let current = server.url;
  await migrate({ url: server.url });
  const url = (await options.through?.(server.url, chance)) ?? server.url;
  const ledger = await makeLedger();
  const load = new Load(url, chance);
  const fleet = makeFleet(url, ledger.url, chance);

  const sql = async <Row>(text: string, values: unknown[] = []): Promise<Row[]> =>
    until("the database answers", () => ask<Row>(current, text, values), 60_000);
  for (const table of sideTables) await sql(table);

  const seenEnds = new Map<string, string>();
  const looking = setInterval(() => void look().catch(() => {}), lookMs);
  let isLooking = false;
  const look = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    try {
      const ended = await ask<{ id: string; how: string }>(
        current,
        `select id, ${endOf} as how from runs where completed_at > clock_timestamp() - interval '2 seconds'`,
      );
      for (const { id, how } of ended ?? []) if (!seenEnds.has(id)) seenEnds.set(id, how);
    } finally {
      isLooking = false;
    }
  };

  afterAll(async () => {
    clearInterval(looking);
    await fleet.stop();
    await load.close();
    await server.stop();
  });

  const expectAll = (all: readonly Invariant[]): Promise<void> =>
    expectInvariants(all, { sql, ledger: ledger.sql, history: load.history, seenEnds }, chance.seed);

  return {
    server,
    fleet,
    load,
    chance,
    sql,
    moveTo: (other) => {
      current = other;
    },
    ledger: ledger.sql,
    quiet: async (longestMs = 120_000) => {
      const open = "select from runs where completed_at is null limit 1";
      try {
        await until("everything has ended", async () => (await sql(open)).length === 0, longestMs);
      } catch {
        expect(await sql(openRuns), `seed ${chance.seed}: still open after ${longestMs} ms`).toEqual([]);
      }
    },
    judgeAndForget: async () => {
      await expectAll(invariants);
      load.history.started.length = 0;
      await sql("update runs set expires_at = clock_timestamp()");
      const sweep = async () => (await sql<{ n: number }>("select swept as n from sweep(1000)"))[0]!.n;
      while ((await sweep()) > 0);
      await sql("truncate public.transfers, public.turns");
      await ledger.sql("truncate public.ledger");
      expect(await sql(leftOvers)).toEqual([]);
      await until("nobody looks", () => !isLooking);
      seenEnds.clear();
    },
    judge: async () => {
      await expectAll(invariants);
      await fleet.drain();
      await expectAll(afterStop);
      expect(seenEnds.size).toBeGreaterThan(0);
    },
  };
}

export async function expectInvariants(
  all: readonly Invariant[],
  evidence: Evidence,
  seed: number,
): Promise<void> {
  const broken: Record<string, unknown[]> = {};
  for (const { says, broken: find } of all) {
    const found = await find(evidence);
    if (found.length > 0) broken[says] = found.slice(0, 5);
  }
  expect(broken, `seed ${seed}`).toEqual({});
}

/** Null: nobody is there. */
export async function ask<Row>(url: string, text: string, values: unknown[] = []): Promise<Row[] | null> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("set search_path = pawl, public");
    return (await client.query(text, values)).rows as Row[];
  } catch (error) {
    if (error instanceof pg.DatabaseError && !isAway(error.code)) throw error;
    return null;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Shutting down, starting, or ended by a crash. */
const isAway = (code: string | undefined): boolean =>
  code !== undefined && (code.startsWith("57P") || code === "08006");
