import { afterEach, describe, expect, it } from "vitest";
import type { NewRun } from "../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../support/database.js";
import { claim, claimOne, commit, done, park, register, signal, start } from "../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
afterEach(async () => {
  await sql("delete from runs");
  await sql("delete from workers where id <> 'worker'");
  await sql("delete from definitions where name <> 'counter'");
});

const ghost = { name: "ghost", at: new Date(Date.now() - 3_600_000) };
const ghosts = (count: number, given: Partial<NewRun> = {}): Promise<string[]> =>
  start(database, ...Array.from({ length: count }, () => ({ ...ghost, ...given })));
/** A worker that serves ghosts, in this queue and others. */
const serveGhosts = (
  workerId: string,
  { queue = "default", priority = 0, also = [] as string[] } = {},
): Promise<void> =>
  store.register({
    workerId,
    leaseMs: 600_000,
    queues: [queue, ...also],
    info: "{}",
    definitions: [{ name: "ghost", version: 1, kind: "machine", queue, priority, retentionMs: 60_000 }],
  });
const claimGhosts = async (
  workerId: string,
  options: Parameters<typeof claim>[1] = {},
): Promise<string[]> => {
  const { runs } = await claim(database, { names: ["ghost"], workerId, limit: 500, ...options });
  return runs.map(({ runId }) => runId);
};
const claimedIds = async (): Promise<string[]> => (await claim(database)).runs.map(({ runId }) => runId);
const holds = async (ids: readonly string[]): Promise<number[]> => {
  const rows = await sql<{ hold: number }>(
    "select r.hold from unnest($1::bigint[]) with ordinality u(id, o) join runs r on r.id = u.id order by u.o",
    [ids],
  );
  return rows.map(({ hold }) => hold);
};

describe("a run that no live worker serves", () => {
  it("is parked when a claim walks over it, stays runnable and is counted", async () => {
    const ids = await ghosts(2);
    await ghosts(1, { version: 3 });
    const [mine] = await start(database, {});
    expect(await claimedIds()).toEqual([mine]);
    expect(await holds(ids)).toEqual([2, 2]);
    expect(await sql("select status from runs where id = $1", [ids[0]])).toEqual([{ status: "runnable" }]);
    const rows = await sql(
      "select workflow_name as name, workflow_version as version, runs, due_since = $1 as since from unserved_run order by 2",
      [ghost.at],
    );
    expect(rows).toEqual([
      { name: "ghost", version: 1, runs: "2", since: true },
      { name: "ghost", version: 3, runs: "1", since: true },
    ]);
  });

  it("is left alone before it has been due for a minute", async () => {
    const [fresh, recent] = await start(
      database,
      { name: "ghost" },
      { name: "ghost", at: new Date(Date.now() - 30_000) },
    );
    await claim(database);
    expect(await holds([fresh!, recent!])).toEqual([0, 0]);
  });

  it("is left alone when another live worker serves it, and parked when that one is dead", async () => {
    const ids = await ghosts(1);
    await serveGhosts("elsewhere");
    await claim(database);
    expect(await holds(ids)).toEqual([0]);
    await sql("update workers set seen_at = seen_at - interval '1 hour' where id = 'elsewhere'");
    await claim(database);
    expect(await holds(ids)).toEqual([2]);
  });

  it("is parked as a wait whose deadline has passed, too; a signal finds it, and it comes back", async () => {
    const [runId] = await ghosts(1);
    await serveGhosts("leaves");
    const run = await claimOne(database, { names: ["ghost"], workerId: "leaves" });
    await commit(database, run, park("go", { timeoutMs: 0 }));
    await store.unregister("leaves");
    await sql("update runs set eligible_at = $1 where id = $2", [ghost.at, runId]);
    await claim(database);
    expect(await holds([runId!])).toEqual([2]);
    expect(await signal(database, runId!, "go")).toBe("delivered");
    expect(await holds([runId!])).toEqual([2]);
    await serveGhosts("comes");
    expect(await store.place(100)).toEqual(["default"]);
    expect(await claimGhosts("comes")).toEqual([runId]);
  });

  it("can be cancelled while it is parked", async () => {
    const [runId] = await ghosts(1);
    await claim(database);
    expect(await store.cancel(runId!, { reason: null, cascade: false })).toMatchObject({
      verdict: "cancelled",
    });
    expect(await sql("select from unserved_run")).toEqual([]);
  });

  it("does not wait for, nor park, what somebody has locked", async () => {
    const [locked, free] = await ghosts(2);
    const user = await database.connect();
    await user.query("begin");
    await user.query("select from runs where id = $1 for update", [locked]);
    await claim(database);
    expect(await holds([locked!, free!])).toEqual([0, 2]);
    await user.query("rollback");
  });
});

describe("thousands of them", () => {
  it("are out of the way after a few claims, and then no claim walks over them", async () => {
    await ghosts(5_000);
    const [mine] = await start(database, {});
    let look = await claim(database, { limit: 10 });
    let calls = 1;
    while (look.after !== null) {
      look = await claim(database, { limit: 10, after: look.after });
      calls++;
    }
    expect(look.runs.map(({ runId }) => runId)).toEqual([mine]);
    expect(calls).toBeLessThanOrEqual(6);
    expect(await sql("select runs from unserved_run")).toEqual([{ runs: "5000" }]);
    const [next] = await start(database, {});
    const again = await claim(database, { limit: 10 });
    expect(again.runs.map(({ runId }) => runId)).toEqual([next]);
    expect(again.after).toBeNull();
    expect(await sql("select from runs where hold = 0 and name = 'ghost'")).toEqual([]);
  });

  it("come back in batches once a worker registers their definition, in their order", async () => {
    const ids = await ghosts(250);
    await claim(database);
    expect(await store.place(100)).toEqual([]);
    await serveGhosts("comes");
    const placed: number[] = [];
    while ((await store.place(100)).length > 0) {
      placed.push((await sql("select from runs where name = 'ghost' and hold = 0")).length);
    }
    expect(placed).toEqual([100, 200, 250]);
    expect(await claimGhosts("comes")).toEqual(ids);
  });

  it("of other definitions do not keep one from being placed", async () => {
    await ghosts(120, { name: "aaa-nobody" });
    const ids = await ghosts(1);
    await claim(database, { limit: 500 });
    await serveGhosts("comes");
    await store.place(10);
    expect(await claimGhosts("comes")).toEqual(ids);
    expect(await sql("select runs from unserved_run")).toEqual([{ runs: "120" }]);
  });
});

describe("a run started by name before anybody registers it", () => {
  const byName = { name: "ghost", version: null, kind: null, queue: null, priority: null, retentionMs: null };

  it("waits, and takes queue, priority, kind and retention from the definition", async () => {
    const [runId] = await start(database, byName);
    expect(await sql("select hold, queue from runs where id = $1", [runId])).toEqual([
      { hold: 2, queue: null },
    ]);
    expect(await sql("select workflow_name as name, runs from unserved_run")).toEqual([
      { name: "ghost", runs: "1" },
    ]);
    await serveGhosts("comes", { queue: "haunted", priority: 7 });
    expect(await store.place(100)).toEqual(["haunted"]);
    const rows = await sql(
      "select hold, queue, priority, kind, retention::text as kept from runs where id = $1",
      [runId],
    );
    expect(rows).toEqual([{ hold: 0, queue: "haunted", priority: 7, kind: "machine", kept: "00:01:00" }]);
    expect(await claimGhosts("comes", { queue: "haunted" })).toEqual([runId]);
  });

  it("keeps what was given at its start", async () => {
    const [runId] = await start(database, { ...byName, queue: "mine", priority: -3, retentionMs: 5_000 });
    await serveGhosts("comes", { queue: "haunted", priority: 7, also: ["mine"] });
    expect(await store.place(100)).toEqual(["mine"]);
    const rows = await sql("select priority, retention::text as kept from runs where id = $1", [runId]);
    expect(rows).toEqual([{ priority: -3, kept: "00:00:05" }]);
  });
});

describe("a run that nobody serves is not in line for its key", () => {
  const partitionKey = "shared";

  it("once it is parked: the next is let in, and when it comes back it is first again", async () => {
    const [head] = await ghosts(1, { partitionKey });
    const [first, second] = await start(database, { partitionKey }, { partitionKey });
    await claim(database);
    const run = await claimOne(database);
    expect([run.runId, await holds([head!])]).toEqual([first, [2]]);
    await serveGhosts("comes");
    await store.place(100);
    expect(await claimGhosts("comes")).toEqual([]);
    await commit(database, run, done());
    const back = await claimOne(database, { names: ["ghost"], workerId: "comes" });
    expect(back.runId).toBe(head);
    expect(await claimedIds()).toEqual([]);
    await commit(database, back, done());
    expect(await claimedIds()).toEqual([second]);
  });

  it("and several of one key come back one by one", async () => {
    const ids = await ghosts(3, { partitionKey });
    await claim(database);
    expect(await holds(ids)).toEqual([2, 3, 3]);
    await serveGhosts("comes");
    await store.place(100);
    for (const id of ids) {
      const run = await claimOne(database, { names: ["ghost"], workerId: "comes" });
      expect(run.runId).toBe(id);
      expect(await claimGhosts("comes")).toEqual([]);
      await commit(database, run, done());
    }
  });

  it("and a line of them does not keep those behind it waiting one by one", async () => {
    const ids = await ghosts(5, { partitionKey });
    const [later] = await ghosts(1, { partitionKey, at: new Date() });
    const [behind] = await start(database, { partitionKey });
    await claim(database);
    expect(await holds([...ids, later!])).toEqual([2, 3, 3, 3, 3, 0]);
    await store.cancel(later!, { reason: null, cascade: false });
    expect(await claimedIds()).toEqual([behind]);
  });

  it("and many lines of them are parked a bounded number at a time", async () => {
    const keys = Array.from({ length: 30 }, (_, n) => ({ ...ghost, partitionKey: `line-${n}` }));
    await start(database, ...Array.from({ length: 60 }, () => keys).flat());
    const parked = async (): Promise<number> => (await sql("select from runs where (hold & 2) <> 0")).length;
    await claim(database);
    expect(await parked()).toBe(30 + 1_000);
    for (let look = 0; look < 30; look++) await claim(database);
    expect(await parked()).toBe(30 * 60);
  });

  it("nor when it is in a queue that nobody looks at", async () => {
    await ghosts(1, { partitionKey, queue: "deserted" });
    const [runId] = await start(database, { partitionKey });
    await claim(database);
    await store.place(100);
    await store.repairKeys(null, 100);
    expect(await claimedIds()).toEqual([runId]);
  });
});
