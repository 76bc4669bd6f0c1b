import { afterEach, describe, expect, it } from "vitest";
import type { NewRun, Transition } from "../../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../../support/database.js";
import {
  claim,
  claimOne,
  commit,
  commitAll,
  done,
  keep,
  next,
  park,
  register,
  retry,
  signal,
  spawn,
  start,
  stop,
} from "../../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
await store.register({
  workerId: "other-worker",
  leaseMs: 600_000,
  queues: ["mail"],
  info: "{}",
  definitions: [
    { name: "other", version: 1, kind: "machine", queue: "mail", priority: 0, retentionMs: 1_000 },
  ],
});
afterEach(() => sql("delete from runs"));

const minutesAgo = (minutes: number): Date => new Date(Date.now() - minutes * 60_000);
const line = (partitionKey: string, count: number, given: Partial<NewRun> = {}): Promise<string[]> =>
  start(database, ...Array.from({ length: count }, () => ({ partitionKey, ...given })));
const claimedIds = async (options: Parameters<typeof claim>[1] = {}): Promise<string[]> =>
  (await claim(database, options)).runs.map(({ runId }) => runId);
const holds = async (ids: readonly string[]): Promise<number[]> => {
  const rows = await sql<{ hold: number }>(
    "select r.hold from unnest($1::bigint[]) with ordinality u(id, o) join runs r on r.id = u.id order by u.o",
    [ids],
  );
  return rows.map(({ hold }) => hold);
};
/** Ends the claims of a worker like a crash: its lease has passed. */
const crash = async (workerId: string): Promise<void> => {
  await sql("update workers set seen_at = seen_at - interval '2 hours' where id = $1", [workerId]);
  await sql("update settings set beats_since = clock_timestamp() - interval '1 hour'");
  await store.reap(100);
};

describe("runs that share a key", () => {
  it("are claimed one at a time, in order, each when the one before it has ended", async () => {
    const ids = await line("a", 4);
    for (const id of ids) {
      const run = await claimOne(database);
      expect(run).toMatchObject({ runId: id, partitionKey: "a" });
      expect(await claimedIds()).toEqual([]);
      await commit(database, run, done());
    }
  });

  it("do not keep runs of other keys, or without one, from being claimed", async () => {
    const ids = await start(database, { partitionKey: "a" }, { partitionKey: "b" }, {}, {});
    expect(await claimedIds()).toEqual(ids);
  });

  it("go by priority, eligible_at and id, in whatever queue and of whatever definition they are", async () => {
    const partitionKey = "mixed";
    const other = { name: "other", queue: "mail", partitionKey };
    const [a, b, c, d, e, f] = await start(
      database,
      { partitionKey },
      { ...other, at: minutesAgo(2) },
      { partitionKey, priority: 5, at: minutesAgo(9) },
      { ...other, priority: -1 },
      { partitionKey, at: minutesAgo(3) },
      other,
    );
    const order: string[] = [];
    for (let left = 6; left > 0; left--) {
      const mail = await claim(database, { queue: "mail", names: ["other"], workerId: "other-worker" });
      const here = await claim(database);
      const [run, ...more] = [...mail.runs, ...here.runs];
      expect(more).toEqual([]);
      order.push(run!.runId);
      await commit(database, { ...run!, claimId: mail.runs[0] ? mail.claimId : here.claimId }, done());
    }
    expect(order).toEqual([d, e, b, a, f, c]);
  });

  it("let one that comes later with a lower priority number go first", async () => {
    const [first, second] = await line("a", 2);
    const run = await claimOne(database);
    expect(await claimedIds()).toEqual([]);
    const [urgent] = await line("a", 1, { priority: -5 });
    await commit(database, run, done());
    expect(run.runId).toBe(first);
    const ahead = await claimOne(database);
    expect(ahead.runId).toBe(urgent);
    await commit(database, ahead, done());
    expect(await claimedIds()).toEqual([second]);
  });

  it("and are started together are blocked from the beginning, but for the first that is due of each key", async () => {
    const ids = await start(
      database,
      { partitionKey: "a", at: new Date(Date.now() + 60_000) },
      { partitionKey: "a", delayMs: 60_000 },
      { partitionKey: "a", priority: 1 },
      { partitionKey: "a" },
      { partitionKey: "a", at: minutesAgo(1) },
      { partitionKey: "b" },
      {},
      {},
      { partitionKey: "a", name: "never-registered", kind: null },
      { partitionKey: "a", priority: 1 },
    );
    expect(await holds(ids)).toEqual([0, 0, 1, 1, 0, 0, 0, 0, 2, 1]);
    expect(await claimedIds()).toEqual([ids[4], ids[5], ids[6], ids[7]]);
  });

  it("are let in although the first of those started together never begins", async () => {
    const [first, second, third] = await line("a", 3);
    await store.cancel(first!, { reason: null, cascade: false });
    const run = await claimOne(database);
    expect(run.runId).toBe(second);
    await store.cancel(third!, { reason: null, cascade: false });
    await commit(database, run, done());
    expect(await claimedIds()).toEqual([]);
  });

  it("and are started together wait for whoever came before them", async () => {
    await line("a", 1);
    const run = await claimOne(database);
    const [first, second] = await line("a", 2);
    expect(await claimedIds()).toEqual([]);
    await commit(database, run, done());
    const ahead = await claimOne(database);
    expect(ahead.runId).toBe(first);
    await commit(database, ahead, done());
    expect(await claimedIds()).toEqual([second]);
  });

  it("are blocked, out of the claim index, and let in one by one", async () => {
    const ids = await line("a", 4);
    let run = await claimOne(database);
    expect(await claimedIds()).toEqual([]);
    expect(await holds(ids)).toEqual([0, 1, 1, 1]);
    await commit(database, run, done());
    expect(await holds(ids)).toEqual([0, 0, 1, 1]);
    run = await claimOne(database);
    await commit(database, run, done());
    expect(await holds(ids)).toEqual([0, 0, 0, 1]);
  });

  it("cannot be held twice, whatever writes it", async () => {
    const ids = await line("a", 2);
    await claimOne(database);
    await expect(
      sql("update runs set status = 'executing', locked_by = 'worker' where id = $1", [ids[1]]),
    ).rejects.toThrow("runs_active_key");
  });

  it("of 512 bytes work, of 513 the store refuses", async () => {
    const ids = await line("k".repeat(512), 2);
    await commit(database, await claimOne(database), done());
    expect(await claimedIds()).toEqual([ids[1]]);
    await expect(line("k".repeat(513), 1)).rejects.toThrow("the partition key is too long");
  });

  it("and are a crowd of 3,000 do not hide what is behind them", async () => {
    const crowd = await line("crowd", 3_000);
    const behind = await start(database, ...Array.from({ length: 10 }, () => ({})));
    const first = await claim(database, { limit: 100 });
    const second = await claim(database, { limit: 100, floor: first.floor });
    const found = [...first.runs, ...second.runs].map(({ runId }) => runId);
    expect(found.toSorted()).toEqual([crowd[0], ...behind].toSorted());
  });
});

describe("a key is let go", () => {
  it.each<[string, Transition]>([
    ["done", done()],
    ["stop", stop("over")],
    ["a wait for ever", park("go")],
    ["a wait with a timeout", park("go", { timeoutMs: 60_000 })],
    ["a delayed retry", retry(60_000)],
    ["a spawn", spawn({ queue: "mail" })],
  ])("by %s", async (_what, transition) => {
    const ids = await line("a", 3);
    const run = await claimOne(database);
    expect(await claimedIds()).toEqual([]);
    await commit(database, run, transition);
    expect(await claimedIds()).toEqual([ids[1]]);
  });

  it("but not by a kept claim", async () => {
    const ids = await line("a", 2);
    const run = await claimOne(database);
    await commit(database, run, keep("two"));
    expect(await claimedIds()).toEqual([]);
    await commit(database, run, done(), { turn: 1 });
    expect(await claimedIds()).toEqual([ids[1]]);
  });

  it.each([
    ["a next", next("two")],
    ["a retry at once", retry(0)],
  ])("by %s, and whoever was due before goes first", async (_what, transition) => {
    const [first, second] = await line("a", 2);
    await commit(database, await claimOne(database), transition);
    const ahead = await claimOne(database);
    expect(ahead.runId).toBe(second);
    expect(await claimedIds()).toEqual([]);
    await commit(database, ahead, done());
    expect(await claimedIds()).toEqual([first]);
  });

  it("by a release, which leaves the run first in line", async () => {
    const [first] = await line("a", 2);
    const { runId, claimId } = await claimOne(database);
    expect(await claimedIds()).toEqual([]);
    await store.release([{ runId, claimId }]);
    expect(await claimedIds()).toEqual([first]);
  });

  it("by the death of its worker: the run is first in line once more, and after its second crash the next", async () => {
    const [first, second] = await line("a", 2);
    await register(database, "dies");
    await claimOne(database, { workerId: "dies" });
    expect(await claimedIds()).toEqual([]);
    await crash("dies");
    await register(database, "dies-too");
    expect(await claimOne(database, { workerId: "dies-too" })).toMatchObject({ runId: first, attempt: 1 });
    await crash("dies-too");
    expect(await claimedIds()).toEqual([second]);
  });

  it("with several others in one commit", async () => {
    const runs = ["a", "b", "c"].flatMap((partitionKey) => [{ partitionKey }, { partitionKey }]);
    const ids = await start(database, ...runs);
    const { runs: held, claimId } = await claim(database);
    expect(held.map(({ runId }) => runId)).toEqual([ids[0], ids[2], ids[4]]);
    await commitAll(database, held, claimId, () => done());
    expect(await claimedIds()).toEqual([ids[1], ids[3], ids[5]]);
  });

  it("to the second when the first is cancelled, blocked or not", async () => {
    const [first, second, third, fourth] = await line("a", 4);
    const run = await claimOne(database);
    expect(await claimedIds()).toEqual([]);
    await store.cancel(second!, { reason: null, cascade: false });
    await commit(database, run, done());
    expect(await holds([third!, fourth!])).toEqual([0, 1]);
    await store.cancel(third!, { reason: null, cascade: false });
    expect(run.runId).toBe(first);
    expect(await claimedIds()).toEqual([fourth]);
  });

  it("by a cancelled run not before its worker lets go", async () => {
    const [first, second] = await line("a", 2);
    const { claimId } = await claimOne(database);
    await store.cancel(first!, { reason: null, cascade: false });
    expect(await claimedIds()).toEqual([]);
    await store.repairKeys(null, 100);
    expect(await claimedIds()).toEqual([]);
    await store.release([{ runId: first!, claimId }]);
    expect(await claimedIds()).toEqual([second]);
  });

  it("by a cancelled run whose worker dies", async () => {
    const [first, second] = await line("a", 2);
    await register(database, "dies-cancelled");
    await claimOne(database, { workerId: "dies-cancelled" });
    await store.cancel(first!, { reason: null, cascade: false });
    expect(await claimedIds()).toEqual([]);
    await crash("dies-cancelled");
    expect(await claimedIds()).toEqual([second]);
  });
});

describe("next", () => {
  it("moves a run to another key, behind whoever holds that, and frees the old one", async () => {
    const [moving, behind] = await line("old", 2);
    const [resident] = await line("new", 1);
    const { runs, claimId } = await claim(database);
    expect(runs.map(({ runId }) => runId)).toEqual([moving, resident]);
    await commit(database, { ...runs[0]!, claimId }, next("two", null, { partitionKey: "new" }));
    expect(await claimedIds()).toEqual([behind]);
    await commit(database, { ...runs[1]!, claimId }, done());
    expect(await claimOne(database)).toMatchObject({ runId: moving, partitionKey: "new" });
  });

  it("drops the key with null: the run is claimed beside its old siblings", async () => {
    const ids = await line("a", 2);
    await commit(database, await claimOne(database), next("two", null, { partitionKey: null }));
    const { runs } = await claim(database);
    expect(new Set(runs.map(({ runId }) => runId))).toEqual(new Set(ids));
    expect(runs.find(({ runId }) => runId === ids[0])).toMatchObject({ partitionKey: null });
  });

  it("keeps the key when it is left out", async () => {
    const [runId] = await line("a", 1);
    await commit(database, await claimOne(database), next("two"));
    expect(await claimOne(database)).toMatchObject({ runId, step: "two", partitionKey: "a" });
  });
});

describe("a blocked run", () => {
  it("that a signal wakes keeps its place and stays blocked", async () => {
    const [waits, holder, last] = await line("a", 3);
    await commit(database, await claimOne(database), park("go", { timeoutMs: 60_000 }));
    const run = await claimOne(database);
    expect(run.runId).toBe(holder);
    // its deadline has passed, while the key is held
    await sql("update runs set eligible_at = clock_timestamp() - interval '1 hour' where id = $1", [waits]);
    expect(await claimedIds()).toEqual([]);
    expect(await holds([waits!, last!])).toEqual([1, 1]);
    expect(await signal(database, waits!, "go")).toBe("delivered");
    expect(await holds([waits!, last!])).toEqual([1, 1]);
    expect(await claimedIds()).toEqual([]);
    await commit(database, run, done());
    expect(await claimOne(database)).toMatchObject({ runId: waits, timedOut: false });
  });
});
