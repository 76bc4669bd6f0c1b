import { afterEach, describe, expect, it } from "vitest";
import type { NewRun } from "../../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../../support/database.js";
import { claim, claimOne, commit, next, park, register, retry, signal, start } from "../../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");

// The engine's clock stands still and moves only when a test says so.
await sql("create table public.clock (at timestamptz not null)");
await sql("insert into public.clock values ('2030-01-01 12:00:00Z')");
await sql(
  "create or replace function pawl.clock() returns timestamptz language sql volatile as 'select at from public.clock'",
);
const pass = (ms: number): Promise<unknown> =>
  sql("update public.clock set at = at + $1 * interval '1 millisecond'", [ms]);

afterEach(async () => {
  await sql("delete from runs");
  await sql("delete from buckets");
  await sql("delete from limits");
});

const setLimit = (allowed: number, periodMs: number, burst: number, name = "api"): Promise<boolean> =>
  store.setLimit({ name, allowed, periodMs, burst, concurrent: null });
const limited = (count: number, given: Partial<NewRun> = {}): Promise<string[]> =>
  start(database, ...Array.from({ length: count }, () => ({ rateLimit: "api", ...given })));
const claimedIds = async (options: Parameters<typeof claim>[1] = {}): Promise<string[]> =>
  (await claim(database, options)).runs.map(({ runId }) => runId);
/** When runs are due, in milliseconds from now. */
const dueIn = async (ids: readonly string[]): Promise<number[]> => {
  const rows = await sql<{ ms: number }>(
    `select (extract(epoch from r.eligible_at - pawl.clock()) * 1000)::float8 as ms
     from unnest($1::bigint[]) with ordinality u(id, o) join runs r on r.id = u.id order by u.o`,
    [ids],
  );
  return rows.map(({ ms }) => Math.round(ms));
};

describe("a rate limit", () => {
  it("lets through the burst at once, and then as much as time has brought", async () => {
    await setLimit(10, 1_000, 3);
    const ids = await limited(8);
    expect(await claimedIds()).toEqual(ids.slice(0, 3));
    await pass(99);
    expect(await claimedIds()).toEqual([]);
    await pass(2);
    expect(await claimedIds()).toEqual([ids[3]]);
    await pass(201);
    expect(await claimedIds()).toEqual(ids.slice(4, 6));
  });

  it("never saves up more than its burst", async () => {
    await setLimit(10, 1_000, 3);
    await limited(3);
    await claim(database);
    await pass(3_600_000);
    await limited(9);
    expect(await claimedIds()).toHaveLength(3);
  });

  it("puts runs off one behind the other, and who comes later behind them", async () => {
    await setLimit(10, 1_000, 2);
    const ids = await limited(6);
    expect(await claimedIds()).toEqual(ids.slice(0, 2));
    expect(await dueIn(ids.slice(2))).toEqual([100, 200, 300, 400]);
    await pass(50);
    const [late] = await limited(1);
    expect(await claimedIds()).toEqual([]);
    expect(await dueIn([...ids.slice(2), late!])).toEqual([50, 150, 250, 350, 450]);
    // a token is there, and promised: not even a lower priority number gets it
    await pass(60);
    const [later] = await limited(1, { priority: -1 });
    expect(await claimedIds()).toEqual([ids[2]]);
    expect(await dueIn([later!])).toEqual([490]);
    const rows = await sql("select distinct eligible_at from runs where throttled");
    expect(rows).toHaveLength(5);
  });

  it("keeps a promised token for the run it was promised to, with a burst of 1 as well", async () => {
    await setLimit(10, 1_000, 1);
    const [, promised] = await limited(2);
    await claim(database);
    await pass(101);
    await limited(1, { queue: "mail" });
    expect(await claimedIds({ queue: "mail" })).toEqual([]);
    expect(await claimedIds()).toEqual([promised]);
  });

  it("takes the weight of a run, 1 unless given", async () => {
    await setLimit(10, 1_000, 5);
    const [heavy, light, last] = await start(
      database,
      { rateLimit: "api", weight: 4 },
      { rateLimit: "api" },
      { rateLimit: "api", weight: 3 },
    );
    expect(await claimedIds()).toEqual([heavy, light]);
    expect(await dueIn([last!])).toEqual([300]);
    await pass(301);
    expect(await claimedIds()).toEqual([last]);
  });

  it("has a bucket for every key, and one without", async () => {
    await setLimit(1, 1_000, 1);
    const ids = await start(
      database,
      ...["api:a", "api:a", "api:b", "api:b:c", "api"].map((rateLimit) => ({ rateLimit })),
    );
    expect(await claimedIds()).toEqual([ids[0], ...ids.slice(2)]);
    const rows = await sql<{ key: string }>("select key from buckets order by key");
    expect(rows.map(({ key }) => key).toSorted()).toEqual(["", "a", "b", "b:c"]);
  });

  it("never keeps other runs of the queue back, however many it puts off", async () => {
    await setLimit(1, 3_600_000, 1);
    const [first] = await limited(3_000);
    const others = await start(database, {}, {});
    let look = await claim(database, { limit: 10 });
    const found = [...look.runs];
    while (look.more) found.push(...(look = await claim(database, { limit: 10, floor: look.floor })).runs);
    expect(found.map(({ runId }) => runId)).toEqual([first, ...others]);
  });

  it("gives no stretch of time twice, even if a call that read its clock before another ends after it", async () => {
    await setLimit(10, 1_000, 1);
    await limited(1);
    await claim(database);
    await pass(500);
    await limited(1, { priority: -9 });
    await claim(database);
    // a claim that began 400 ms before the last one, and gets at the bucket only now
    await pass(-400);
    await limited(1, { priority: -9 });
    expect(await claimedIds()).toEqual([]);
    await pass(400);
    expect(await claimedIds()).toEqual([]);
    await pass(101);
    expect(await claimedIds()).toHaveLength(1);
  });

  it("tells a claim when the first put-off run is due", async () => {
    await setLimit(10, 1_000, 1);
    await limited(3);
    await claim(database);
    expect(Math.round((await claim(database)).dueMs!)).toBe(100);
  });
});

describe("the limit of a step", () => {
  it("takes a token for every claim: retries, crashes and releases too", async () => {
    await setLimit(1, 1_000, 3);
    const [runId] = await limited(1);
    await commit(database, await claimOne(database), retry(0));
    const { claimId } = await claimOne(database);
    await store.release([{ runId: runId!, claimId }]);
    await register(database, "dies");
    await claimOne(database, { workerId: "dies" });
    await sql("delete from workers where id = 'dies'");
    expect(await store.reap(100)).toBe(1);
    expect(await claimedIds()).toEqual([]);
    expect(await dueIn([runId!])).toEqual([1_000]);
  });

  it("begins with the next that names it and ends with its step", async () => {
    await setLimit(1, 1_000, 1);
    await start(database, {});
    await commit(database, await claimOne(database), next("two", null, { rateLimit: "api", weight: 1 }));
    const run = await claimOne(database);
    await commit(database, run, next("three"));
    // the bucket is empty, and nobody asks it
    expect(await claimOne(database)).toMatchObject({ runId: run.runId, step: "three" });
  });

  it("ends with a wait too", async () => {
    await setLimit(1, 1_000, 1);
    const [runId] = await limited(1);
    await commit(database, await claimOne(database), park("go"));
    await signal(database, runId!, "go");
    expect(await claimedIds()).toEqual([runId]);
  });

  it("that is unknown or too small fails its own commit and starts nothing of a batch", async () => {
    await setLimit(1, 1_000, 2);
    await start(database, {});
    const run = await claimOne(database);
    for (const [rateLimit, weight, message] of [
      ["nobody", 1, 'there is no rate limit "nobody"'],
      ["api", 3, "weight 3 is more than the burst"],
    ] as const) {
      const verdict = await commit(database, run, next("two", null, { rateLimit, weight }));
      expect(verdict).toMatchObject({ kind: "failed", code: "PW422" });
      expect(verdict).toHaveProperty("message", expect.stringContaining(message));
      const batch = start(database, {}, { rateLimit, weight }, {});
      await expect(batch).rejects.toMatchObject({ code: "InvalidOption" });
    }
    expect(await commit(database, run, next("two", null, { rateLimit: "api", weight: 2 }))).toMatchObject({
      kind: "committed",
    });
    expect(await sql("select from runs")).toHaveLength(1);
  });
});

describe("a changed limit", () => {
  it("counts at once for runs that the old one put off", async () => {
    await setLimit(1, 3_600_000, 1);
    const ids = await limited(4);
    await claim(database);
    expect(await setLimit(100, 1_000, 10)).toBe(true);
    expect(await store.bringForward(2)).toBe(2);
    expect(await store.bringForward(2)).toBe(1);
    await pass(100);
    expect(await claimedIds()).toEqual(ids.slice(1));
  });

  it("brings forward only runs of its own name, and none that a delay put off", async () => {
    await setLimit(1, 3_600_000, 1);
    await setLimit(1, 3_600_000, 1, "api2");
    await start(
      database,
      { rateLimit: "api2" },
      { rateLimit: "api2" },
      { rateLimit: "api", delayMs: 60_000 },
    );
    await claim(database);
    expect(await setLimit(1, 60_000, 1)).toBe(true);
    expect(await store.bringForward(100)).toBe(0);
  });

  it("writes one row, however many runs are put off; recover brings them forward in batches, in their order", async () => {
    await setLimit(1, 3_600_000, 1);
    const keys = ["api", "api:a", "api:b:c"];
    const ids = await start(
      database,
      ...Array.from({ length: 3_003 }, (_, n) => ({ rateLimit: keys[n % 3]! })),
    );
    for (let look = await claim(database); look.more; look = await claim(database, { floor: look.floor }));
    const before = await dueIn(ids);
    expect(await setLimit(1, 1_000, 1)).toBe(true);
    expect(await dueIn(ids)).toEqual(before);
    let calls = 0;
    let marks: string | null = null;
    let again = true;
    for (; again; calls++) ({ again, marks } = await store.recover({ limit: 1_000, repairs: true, marks }));
    expect(calls).toBe(4);
    // Each bucket has let one through: the n-th after it has its token after n seconds.
    expect((await dueIn(ids)).slice(3)).toEqual(ids.slice(3).map((_, n) => (Math.floor(n / 3) + 1) * 1_000));
    await pass(1_001);
    expect(await claimedIds()).toEqual(ids.slice(3, 6));
  });

  it("brings forward what somebody had locked, once it is free, and meanwhile does not go round and round", async () => {
    await setLimit(1, 3_600_000, 1);
    const ids = await limited(3);
    await claim(database);
    const user = await database.connect();
    try {
      await user.query("begin");
      await user.query("select from runs where id = $1 for update", [ids[1]]);
      await setLimit(1, 1_000, 1);
      await store.bringForward(100);
      expect((await dueIn(ids))[2]).toBe(2_000);
      // The others move up, and then nothing is left to be done.
      await store.recover({ limit: 100, repairs: true, marks: null });
      expect((await dueIn(ids))[2]).toBe(1_000);
      const recovered = await store.recover({ limit: 100, repairs: true, marks: null });
      expect(recovered).toMatchObject({ again: false, queues: [] });
    } finally {
      await user.end();
    }
    await store.bringForward(100);
    expect((await dueIn(ids)).slice(1)).toEqual([2_000, 1_000]);
    expect(await sql("select from limits where forward is not null")).toEqual([]);
  });

  it("that lets through less leaves runs where they are: the claim puts them off again", async () => {
    await setLimit(1, 1_000, 1);
    const ids = await limited(3);
    await claim(database);
    const before = await dueIn(ids);
    expect(await setLimit(1, 10_000, 1)).toBe(false);
    expect(await dueIn(ids)).toEqual(before);
    await pass(2_001);
    expect(await claimedIds()).toEqual([]);
    await pass(8_000);
    expect(await claimedIds()).toEqual([ids[1]]);
  });

  it("that could let nothing through in a year is refused", async () => {
    await expect(setLimit(1e-9, 86_400_000, 1)).rejects.toThrow("at least 1 in 366 days");
    await sql(
      "insert into limits (name, allowed, period, burst, changed_at) values ('api', 1e-9, '1 day', 1, now())",
    );
    const ids = await limited(3);
    expect(await claimedIds()).toEqual([ids[0]]);
    expect(await claimedIds()).toEqual([]);
    expect(await sql("select from runs where throttled and isfinite(eligible_at)")).toHaveLength(2);
  });

  it("to the same values changes nothing", async () => {
    await setLimit(1, 3_600_000, 1);
    const ids = await limited(3);
    await claim(database);
    const before = await dueIn(ids);
    expect(await setLimit(1, 3_600_000, 1)).toBe(false);
    expect(await dueIn(ids)).toEqual(before);
  });

  it("with a burst below the weight of a run does not leave it stuck", async () => {
    await setLimit(10, 1_000, 10);
    const [, heavy] = await limited(2, { weight: 10 });
    await claim(database);
    await setLimit(10, 1_000, 2);
    await store.bringForward(100);
    await pass(200);
    expect(await claimedIds()).toEqual([heavy]);
  });

  it("that is deleted by hand leaves nobody stuck", async () => {
    await setLimit(10, 1_000, 1);
    const ids = await limited(3);
    await claim(database);
    await sql("delete from limits");
    await pass(250);
    expect(await claimedIds()).toEqual(ids.slice(1));
  });
});
