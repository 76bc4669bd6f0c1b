import type pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import type { NewRun } from "../../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../../support/database.js";
import { claim, claimOne, commit, done, register, start } from "../../support/store.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");

// The engine's clock, which tests can move on.
await sql("create table public.clock (ahead interval not null)");
await sql("insert into public.clock values ('0')");
await sql(
  "create or replace function pawl.clock() returns timestamptz language sql volatile as 'select clock_timestamp() + ahead from public.clock'",
);
const pass = (ms: number): Promise<unknown> =>
  sql("update public.clock set ahead = ahead + $1 * interval '1 millisecond'", [ms]);

/** Connections of transactions that a test has left open. */
const open: pg.Client[] = [];

afterEach(async () => {
  for (const client of open.splice(0)) await client.end();
  await sql("delete from runs");
  await sql("delete from buckets");
  await sql("delete from limits");
});

const hour = 3_600_000;
const setLimit = (allowed: number, periodMs: number, burst: number, name = "api"): Promise<boolean> =>
  store.setLimit({ name, allowed, periodMs, burst, concurrent: null });
const limited = (count: number, given: Partial<NewRun> = {}): Promise<string[]> =>
  start(database, ...Array.from({ length: count }, () => ({ rateLimit: "api", ...given })));
const claimedIds = async (options: Parameters<typeof claim>[1] = {}): Promise<string[]> =>
  (await claim(database, options)).runs.map(({ runId }) => runId);
/** Makes the bucket: what several claimers make of one that is not there yet has a law of its own. */
const makeBucket = async (): Promise<void> => {
  await limited(1);
  expect(await claimedIds()).toHaveLength(1);
  await sql("delete from runs");
};
const buckets = (): Promise<{ name: string; key: string }[]> =>
  sql("select name, key from buckets order by name, key");

/** An open transaction that has done this; it ends with the test, whatever becomes of that. */
const transaction = async (text: string): Promise<{ commit: () => Promise<unknown> }> => {
  const client = await database.connect();
  open.push(client);
  await client.query("begin");
  await client.query(text);
  return { commit: () => client.query("commit") };
};

/** Lets claimers with these limits look until `look` says that all is done, or one of them fails. */
async function together(limits: number[], look: (limit: number) => Promise<boolean>): Promise<void> {
  let isOver = false;
  const loops = limits.map(async (limit) => {
    try {
      while (!isOver) isOver ||= await look(limit);
    } finally {
      isOver = true;
    }
  });
  await Promise.allSettled(loops);
  await Promise.all(loops);
}

describe("several claimers at once", () => {
  it("never get more than burst + rate · t between them, and get everything in the end", async () => {
    const allowed = 500;
    const burst = 20;
    await setLimit(allowed, 1_000, burst);
    await makeBucket();
    const count = 1_000;
    await limited(count);
    const clock = async (): Promise<number> => {
      const [row] = await sql<{ ms: number }>(
        "select (extract(epoch from pawl.clock()) * 1000)::float8 as ms",
      );
      return row!.ms;
    };
    const beginMs = await clock();
    const excesses: number[] = [];
    let claimed = 0;
    await together([1, 3, 10, 50], async (limit) => {
      const { runs, claimId } = await claim(database, { limit });
      claimed += runs.length;
      const got = claimed;
      for (const run of runs) {
        await until(
          "it is not busy",
          async () => (await commit(database, { ...run, claimId }, done())).kind !== "busy",
        );
      }
      // by now, all that were counted above had been claimed
      const most = burst + ((await clock()) - beginMs) * (allowed / 1_000);
      if (got > most) excesses.push(got - most);
      return claimed === count;
    });
    expect(excesses).toEqual([]);
    expect(await sql("select from runs where status <> 'done'")).toEqual([]);
  });

  it.each(["select from buckets for update", "update buckets set tokens = tokens - 1"])(
    "do not wait for a bucket that another has at hand (%s): its runs are looked at again soon",
    async (atHand) => {
      await setLimit(1, hour, 5);
      await makeBucket();
      const [run] = await limited(1);
      const [free] = await start(database, {});
      const other = await transaction(atHand);
      const { runs, dueMs } = await claim(database);
      expect(runs.map(({ runId }) => runId)).toEqual([free]);
      expect(dueMs).toBeLessThanOrEqual(5);
      await other.commit();
      expect(await claimedIds()).toEqual([run]);
    },
  );

  it("do not fail over a bucket that another is just making", async () => {
    await setLimit(1, hour, 5);
    const [run] = await limited(1);
    const [free] = await start(database, {});
    const other = await transaction(
      "insert into buckets (name, key, tokens, updated_at, promised_at) values ('api', '', 4, pawl.clock(), pawl.clock())",
    );
    expect(await claimedIds()).toEqual([free]);
    await other.commit();
    expect(await claimedIds()).toEqual([run]);
  });
});

describe("tokens that were promised to runs that are gone", () => {
  const promiseToGhosts = async (): Promise<void> => {
    await setLimit(10, 1_000, 2);
    const ids = await limited(102);
    expect(await claimedIds({ limit: 500 })).toEqual(ids.slice(0, 2));
    for (const runId of ids.slice(2)) await store.cancel(runId, { reason: null, cascade: false });
    await pass(250);
  };

  it("go to a newcomer once the bucket is full", async () => {
    await promiseToGhosts();
    const newcomer = await limited(1);
    expect(await claimedIds()).toEqual(newcomer);
  });

  it("go to as many newcomers as the full bucket has tokens for", async () => {
    await promiseToGhosts();
    const newcomers = await limited(2);
    expect(await claimedIds()).toEqual(newcomers);
  });
});

describe("runs with a partition key and a rate limit", () => {
  it("the first of a key, put off by its limit, lets the next in, and comes back to its place by its new time", async () => {
    await setLimit(1, hour, 1);
    await limited(1);
    await claim(database);
    const [throttled] = await limited(1, { partitionKey: "a" });
    const [next, last] = await start(database, { partitionKey: "a" }, { partitionKey: "a" });
    const run = await until("the next is let in", async () => (await claim(database, { limit: 1 })).runs[0]);
    expect(run.runId).toBe(next);
    expect(await sql("select throttled, hold from runs where id = $1", [throttled])).toEqual([
      { throttled: true, hold: 0 },
    ]);
    await pass(hour);
    expect(await claimedIds()).toEqual([]);
    const [row] = await sql<{ claim_id: string }>("select claim_id from runs where id = $1", [next]);
    await commit(database, { ...run, claimId: row!.claim_id }, done());
    expect(await claimedIds()).toEqual([last]);
  });

  it("take no token while their key is held", async () => {
    await setLimit(1, hour, 2);
    await start(database, { partitionKey: "a" });
    const holder = await claimOne(database);
    const [keyed] = await limited(1, { partitionKey: "a" });
    expect(await claimedIds()).toEqual([]);
    const free = await limited(2);
    expect(await claimedIds()).toEqual(free);
    await commit(database, holder, done());
    expect(await claimedIds()).toEqual([]);
    await pass(hour + 1);
    expect(await claimedIds()).toEqual([keyed]);
  });

  it("never run beside each other nor faster than the limit, and all end", async () => {
    await setLimit(1, 10, 3);
    await makeBucket();
    const count = 120;
    await start(
      database,
      ...Array.from({ length: count }, (_, n) => ({ rateLimit: "api", partitionKey: `key-${n % 6}` })),
    );
    const held = new Set<string>();
    const violations: string[] = [];
    let ended = 0;
    await together([2, 5, 20], async (limit) => {
      const { runs, claimId } = await claim(database, { limit });
      for (const { partitionKey } of runs) {
        if (held.has(partitionKey!)) violations.push(partitionKey!);
        held.add(partitionKey!);
      }
      for (const run of runs) {
        held.delete(run.partitionKey!);
        await until(
          "it is not busy",
          async () => (await commit(database, { ...run, claimId }, done())).kind !== "busy",
        );
        ended++;
      }
      await pass(2);
      if (runs.length === 0) await store.repairKeys(null, 100);
      return ended === count || violations.length > 0;
    });
    expect(violations).toEqual([]);
  });
});

describe("the sweep", () => {
  it("deletes buckets that are full again, and no others", async () => {
    await setLimit(1, 1_000, 2);
    await setLimit(1, hour, 2, "slow");
    await start(database, { rateLimit: "api:a" }, { rateLimit: "api:b" }, { rateLimit: "slow" });
    await claim(database);
    await store.sweep(100);
    expect(await buckets()).toHaveLength(3);
    await pass(2_100);
    await store.sweep(100);
    expect(await buckets()).toEqual([{ name: "slow", key: "" }]);
  });

  it("keeps a bucket whose tokens are promised", async () => {
    await setLimit(1, 1_000, 1);
    await limited(5);
    await claim(database);
    await pass(2_500);
    await store.sweep(100);
    expect(await buckets()).toEqual([{ name: "api", key: "" }]);
  });
});
