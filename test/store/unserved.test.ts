import { afterEach, describe, expect, it } from "vitest";
import { newClaimId } from "../../packages/pawl/dist/values/claim-id.js";
import type { NewRun } from "../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../support/database.js";
import { aCommit, claim, claimOne, commit, done, park, register, signal, start } from "../support/store.js";

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

const unserved = () =>
  sql<{ name: string; version: number; runs: string }>(
    "select workflow_name as name, workflow_version as version, runs from unserved_run order by 1, 2",
  );
const gauge = async (): Promise<[string | null, string | null, number][]> =>
  (await store.gauges(10_000))
    .filter((one) => one.gauge === "unserved")
    .map(({ first, second, value }) => [first, second, value]);

describe("a run that no live worker serves", () => {
  it("is counted although no worker looks at its queue, and stays claimable", async () => {
    const ids = await ghosts(2, { queue: "deserted" });
    await ghosts(1, { version: 3, queue: "deserted" });
    expect(await holds(ids)).toEqual([0, 0]);
    expect(await unserved()).toEqual([
      { name: "ghost", version: 1, runs: "2" },
      { name: "ghost", version: 3, runs: "1" },
    ]);
    expect(await gauge()).toEqual([
      ["ghost", "1", 2],
      ["ghost", "3", 1],
    ]);
    expect(await sql("select from unserved_run where due_since = $1", [ghost.at])).toHaveLength(2);
  });

  it("is not counted before it is due, nor when it is cancelled", async () => {
    const [runId] = await ghosts(1);
    await ghosts(1, { at: new Date(Date.now() + 60_000) });
    expect(await gauge()).toEqual([["ghost", "1", 1]]);
    await store.cancel(runId!, { reason: null, cascade: false });
    expect([await unserved(), await gauge()]).toEqual([[], []]);
  });

  it("is not counted while a live worker serves it there, and is again when that one is dead", async () => {
    await ghosts(1);
    await ghosts(1, { queue: "deserted" });
    await serveGhosts("elsewhere");
    expect(await gauge()).toEqual([["ghost", "1", 1]]);
    await sql("update workers set seen_at = seen_at - interval '1 hour' where id = 'elsewhere'");
    expect(await gauge()).toEqual([["ghost", "1", 2]]);
    expect(await unserved()).toEqual([{ name: "ghost", version: 1, runs: "2" }]);
  });

  it("is claimed as soon as a worker serves it, without any repair", async () => {
    const ids = await ghosts(3);
    await claim(database);
    await serveGhosts("comes");
    expect(await claimGhosts("comes")).toEqual(ids);
  });

  it("is found by a signal, as a wait whose deadline has passed, too", async () => {
    const [runId] = await ghosts(1);
    await serveGhosts("leaves");
    const run = await claimOne(database, { names: ["ghost"], workerId: "leaves" });
    await commit(database, run, park("go", { timeoutMs: 0 }));
    await store.unregister("leaves");
    await claim(database);
    expect(await signal(database, runId!, "go")).toBe("delivered");
    await serveGhosts("comes");
    expect(await claimGhosts("comes")).toEqual([runId]);
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

  it("comes in batches, however many wait for other definitions", async () => {
    await start(database, ...Array.from({ length: 120 }, () => ({ ...byName, name: "aaa-nobody" })));
    const ids = await start(database, ...Array.from({ length: 250 }, () => byName));
    expect(await store.place(100)).toEqual([]);
    await serveGhosts("comes");
    const placed: number[] = [];
    while ((await store.place(100)).length > 0) {
      placed.push((await sql("select from runs where name = 'ghost' and hold = 0")).length);
    }
    expect(placed).toEqual([100, 200, 250]);
    expect(await claimGhosts("comes")).toEqual(ids);
    expect(await gauge()).toEqual([["aaa-nobody", "1", 120]]);
  });

  it("is placed although the worker that registered the definition is dead", async () => {
    await start(database, byName);
    await serveGhosts("leaves", { queue: "haunted" });
    await store.unregister("leaves");
    expect(await store.place(100)).toEqual(["haunted"]);
    expect(await gauge()).toEqual([["ghost", "1", 1]]);
  });
});

describe("a run that nobody serves is not in line for its key", () => {
  const partitionKey = "shared";

  it("while others are: they go first, and when it is served it is first again", async () => {
    const [head] = await ghosts(1, { partitionKey });
    const [first, second] = await start(database, { partitionKey }, { partitionKey });
    const run = await claimOne(database);
    expect(run.runId).toBe(first);
    await serveGhosts("comes");
    expect(await claimGhosts("comes")).toEqual([]);
    await commit(database, run, done());
    const back = await claimOne(database, { names: ["ghost"], workerId: "comes" });
    expect(back.runId).toBe(head);
    expect(await claimedIds()).toEqual([]);
    await commit(database, back, done());
    expect(await claimedIds()).toEqual([second]);
  });

  it("but keeps its place for a minute, while its worker may just be replaced", async () => {
    const [head] = await ghosts(1, { partitionKey, at: new Date(Date.now() - 30_000) });
    const [behind] = await start(database, { partitionKey });
    expect(await claimedIds()).toEqual([]);
    await sql("update runs set eligible_at = eligible_at - interval '1 minute' where id = $1", [head]);
    await store.repairKeys(null, 100);
    expect(await claimedIds()).toEqual([behind]);
  });

  it("and several of one key come one by one", async () => {
    const ids = await ghosts(3, { partitionKey });
    await claim(database);
    await serveGhosts("comes");
    for (const id of ids) {
      const run = await claimOne(database, { names: ["ghost"], workerId: "comes" });
      expect(run.runId).toBe(id);
      expect(await claimGhosts("comes")).toEqual([]);
      await commit(database, run, done());
    }
  });

  it("nor when it is in a queue that nobody looks at, nor are thousands of them", async () => {
    await ghosts(2_000, { partitionKey, queue: "deserted" });
    const [runId] = await start(database, { partitionKey });
    expect(await claimedIds()).toEqual([runId]);
  });

  it("and is handed over to nobody: who frees the key gets the next that is served", async () => {
    const [first, second] = await start(database, { partitionKey }, { partitionKey });
    await ghosts(1, { partitionKey, priority: -1 });
    const run = await claimOne(database);
    const next = { workerId: "worker", claimId: newClaimId() };
    const { verdicts } = await store.commit([{ ...aCommit(run, done()), next }], { patient: true });
    expect([run.runId, verdicts]).toMatchObject([first, [{ kind: "committed", handed: { runId: second } }]]);
  });

  it("once its worker has died: the repair lets in who was blocked behind it", async () => {
    await serveGhosts("leaves");
    await ghosts(1, { partitionKey });
    const [blocked] = await start(database, { partitionKey });
    expect(await claimedIds()).toEqual([]);
    expect(await holds([blocked!])).toEqual([1]);
    await store.unregister("leaves");
    await store.repairKeys(null, 100);
    expect(await claimedIds()).toEqual([blocked]);
  });
});
