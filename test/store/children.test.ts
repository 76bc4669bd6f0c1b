import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import {
  aCommit,
  claim,
  claimOne,
  commit,
  commitAll,
  done,
  key,
  next,
  park,
  register,
  retry,
  signal,
  spawn,
  start,
  stop,
} from "../support/store.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
await register(database, "other");

const parentOf = (runId: string) =>
  sql<{ status: string; pending: number; spawn: number; step: string }>(
    "select status, children_pending as pending, spawn, step from runs where id = $1",
    [runId],
  ).then((rows) => rows[0]!);

const below = (runId: string) =>
  sql<{ id: string }>("select id::text from runs where parent_id = $1 order by child_of, position", [runId]);

/** A parent that waits for this many children, which are claimed. */
async function family(size: number) {
  await start(database, {});
  const parent = await claimOne(database);
  await commit(database, parent, spawn(...Array.from({ length: size }, () => ({}))));
  const { runs, claimId } = await claim(database, { limit: size });
  return { parent, children: runs, claimId };
}

async function endAll(): Promise<void> {
  for (;;) {
    const { runs, claimId } = await claim(database, { limit: 500 });
    if (runs.length === 0) return;
    await commitAll(database, runs, claimId, () => done());
  }
}

describe("spawn and park are one", () => {
  it("the children exist exactly when the parent waits for them", async () => {
    await start(database, {});
    const parent = await claimOne(database);
    expect(await below(parent.runId)).toEqual([]);
    expect(await commit(database, parent, spawn({}, {}))).toMatchObject({ kind: "committed" });
    expect(await parentOf(parent.runId)).toEqual({
      status: "awaiting_children",
      pending: 2,
      spawn: 1,
      step: "gathered",
    });
    expect(await below(parent.runId)).toHaveLength(2);
    await endAll();
  });

  it("a refused spawn starts none and leaves the claim as it was", async () => {
    await start(database, {});
    const parent = await claimOne(database);
    const refused = await commit(database, parent, spawn({}, { rateLimit: "unheard-of", weight: 1 }));
    expect(refused).toMatchObject({ kind: "failed", code: "PW422" });
    expect(await below(parent.runId)).toEqual([]);
    expect(await parentOf(parent.runId)).toMatchObject({ status: "executing", spawn: 0 });
    expect(await commit(database, parent, done())).toMatchObject({ kind: "committed" });
  });

  it("a refused spawn costs no other run of its batch", async () => {
    await start(database, {}, {}, {});
    const { runs, claimId } = await claim(database, { limit: 3 });
    const verdicts = await commitAll(database, runs, claimId, (index) =>
      index === 1 ? spawn({}, { rateLimit: "unheard-of", weight: 1 }) : spawn({}),
    );
    expect(verdicts.map(({ kind }) => kind)).toEqual(["committed", "failed", "committed"]);
    expect(await Promise.all(runs.map(async ({ runId }) => (await below(runId)).length))).toEqual([1, 0, 1]);
    await commit(database, { runId: runs[1]!.runId, claimId }, done());
    await endAll();
  });

  it("a worker that lost its claim, or died before the commit, starts none", async () => {
    await start(database, {});
    const lost = await claimOne(database);
    await store.release([lost]);
    const holder = await claimOne(database, { workerId: "other" });
    expect(await commit(database, lost, spawn({}, {}))).toEqual({ kind: "stale" });
    expect(await below(holder.runId)).toEqual([]);
    await commit(database, holder, done());
  });

  it("a resend after a lost reply starts no second set, whether they have ended or not", async () => {
    await start(database, {});
    const parent = await claimOne(database);
    await commit(database, parent, spawn({}, {}));
    expect(await commit(database, parent, spawn({}, {}))).toMatchObject({ kind: "already" });
    expect(await below(parent.runId)).toHaveLength(2);
    const { runs, claimId } = await claim(database, { limit: 2 });
    await commitAll(database, runs, claimId, () => done());
    expect(await commit(database, parent, spawn({}, {}))).toMatchObject({ kind: "already" });
    expect(await below(parent.runId)).toHaveLength(2);
    await endAll();
  });

  it("waits for no open transaction: while one holds a child's key, the spawn is busy and nothing is written", async () => {
    await start(database, {});
    const parent = await claimOne(database);
    const client = await database.connect();
    await client.query("begin");
    await client.query(
      `select from start_runs(array['(counter,1,machine,default,,,,,,,open,,,,,,,,,,)'::new_run], array['{}'], true, true, null, null)`,
    );
    const child = { uniqueKey: key("open") };
    expect(await commit(database, parent, spawn({}, child))).toEqual({ kind: "busy" });
    expect(await below(parent.runId)).toEqual([]);
    await client.query("rollback");
    expect(await commit(database, parent, spawn({}, child))).toMatchObject({ kind: "committed" });
    expect(await parentOf(parent.runId)).toMatchObject({ pending: 2 });
    await endAll();
  });
});

describe("the barrier", () => {
  it("opens with the last child, when all end in one batch", async () => {
    const { parent, children, claimId } = await family(20);
    const verdicts = await commitAll(database, children, claimId, (index) =>
      index % 2 === 0 ? done() : stop("no"),
    );
    expect(verdicts.every(({ kind }) => kind === "committed")).toBe(true);
    expect(await parentOf(parent.runId)).toMatchObject({ status: "runnable", pending: 0 });
    const woken = await claimOne(database);
    expect(woken).toMatchObject({ runId: parent.runId, step: "gathered", children: 20 });
    await commit(database, woken, done());
    expect((await claim(database)).runs).toEqual([]);
  });

  it("opens once when all end at the same moment in calls of their own, and no call fails", async () => {
    const { parent, children, claimId } = await family(60);
    const verdicts = await Promise.all(
      children.map(async (child) => {
        for (;;) {
          const verdict = await commit(database, { ...child, claimId }, done());
          if (verdict.kind !== "busy") return verdict.kind;
        }
      }),
    );
    expect(verdicts).toEqual(Array(60).fill("committed"));
    expect(await parentOf(parent.runId)).toMatchObject({ status: "runnable", pending: 0 });
    await endAll();
  });

  it("counts each end once: resends, stale commits, retries and crashes count nothing", async () => {
    const { parent, children, claimId } = await family(2);
    const [one, other] = children.map((run) => ({ ...run, claimId }));
    await commit(database, one!, done());
    expect(await commit(database, one!, done())).toMatchObject({ kind: "already" });
    await store.release([other!]);
    expect(await commit(database, other!, done())).toEqual({ kind: "stale" });
    const again = await claimOne(database);
    expect(again.runId).toBe(other!.runId);
    await commit(database, again, retry());
    expect(await parentOf(parent.runId)).toMatchObject({ status: "awaiting_children", pending: 1 });
    await commit(database, await claimOne(database), stop("at last"));
    expect(await parentOf(parent.runId)).toMatchObject({ status: "runnable", pending: 0 });
    await endAll();
  });

  it("counts a child that is cancelled, and the end of one whose cancel came too late only once", async () => {
    const { parent, children, claimId } = await family(2);
    await store.cancel(children[0]!.runId, { reason: null, cascade: false });
    expect(await commit(database, { ...children[0]!, claimId }, done())).toEqual({ kind: "stale" });
    expect(await parentOf(parent.runId)).toMatchObject({ pending: 1 });
    await commit(database, { ...children[1]!, claimId }, done());
    const late = await store.cancel(children[1]!.runId, { reason: null, cascade: false });
    expect(late).toMatchObject({ verdict: "ended", runIds: [] });
    expect(await parentOf(parent.runId)).toMatchObject({ status: "runnable", pending: 0 });
    await store.release(children.map(({ runId }) => ({ runId, claimId })));
    await endAll();
  });

  it("tells which queue the parent became claimable in", async () => {
    const { children, claimId } = await family(1);
    const { claimable } = await store.commit([aCommit({ ...children[0]!, claimId }, done())], {
      patient: true,
    });
    expect(claimable).toMatchObject([{ queue: "default", priority: 0 }]);
    await endAll();
  });

  it("a child whose parent was swept ends like any other", async () => {
    const { parent, children, claimId } = await family(1);
    await store.cancel(parent.runId, { reason: null, cascade: false });
    await sql("update runs set expires_at = clock_timestamp() where id = $1", [parent.runId]);
    expect((await store.sweep(10)).swept).toBe(1);
    expect(await commit(database, { ...children[0]!, claimId }, done('"alone"'))).toMatchObject({
      kind: "committed",
    });
    expect((await store.get([children[0]!.runId]))[0]).toMatchObject({ phase: "done", result: '"alone"' });
  });
});

describe("children are read", () => {
  it("page by page, complete and in order, those that were not started in their places", async () => {
    await start(database, { uniqueKey: key("elsewhere") });
    const holder = await claimOne(database);
    await start(database, {});
    const parent = await claimOne(database);
    const size = 2_300;
    await commit(
      database,
      parent,
      spawn(
        ...Array.from({ length: size }, (_, n) => (n % 1_000 === 999 ? { uniqueKey: key("elsewhere") } : {})),
      ),
    );
    const read: { position: number; created: boolean }[] = [];
    let pages = 0;
    for (;;) {
      const page = await store.children(parent.runId, read.at(-1)?.position ?? -1);
      if (page.length === 0) break;
      expect(page.length).toBeLessThanOrEqual(1_000);
      pages++;
      read.push(...page);
    }
    expect(pages).toBeGreaterThan(2);
    expect(read.map(({ position }) => position)).toEqual(Array.from({ length: size }, (_, n) => n));
    expect(read.filter(({ created }) => !created).map(({ position }) => position)).toEqual([999, 1_999]);
    await commit(database, holder, done());
    await endAll();
  });

  it("in pages of about a mebibyte, at least one at a time", async () => {
    const { parent, children, claimId } = await family(4);
    const large = JSON.stringify("x".repeat(900_000));
    for (const child of children) await commit(database, { ...child, claimId }, done(large));
    const sizes: number[] = [];
    for (let after = -1; ;) {
      const page = await store.children(parent.runId, after);
      if (page.length === 0) break;
      sizes.push(page.length);
      after = page.at(-1)!.position;
    }
    expect(sizes).toEqual([1, 1, 1, 1]);
    await endAll();
  });

  it("only of the last spawn, until the parent goes on", async () => {
    const { parent, children, claimId } = await family(2);
    await commitAll(database, children, claimId, () => done());
    const woken = await claimOne(database);
    expect(woken.children).toBe(2);
    await commit(database, woken, spawn({}));
    const [third] = (await store.children(parent.runId, -1)).map(({ runId }) => runId);
    expect((await below(parent.runId)).at(-1)).toEqual({ id: third });
    await commit(database, await claimOne(database), done());
    const again = await claimOne(database);
    expect(again).toMatchObject({ runId: parent.runId, children: 1 });
    await commit(database, again, next("on"));
    expect(await claimOne(database)).toMatchObject({ runId: parent.runId, children: null });
    await store.cancel(parent.runId, { reason: null, cascade: false });
  });

  it("a signal does not wake a parent that waits for children", async () => {
    const { parent, children, claimId } = await family(1);
    expect(await signal(database, parent.runId, "go")).toBe("delivered");
    expect(await parentOf(parent.runId)).toMatchObject({ status: "awaiting_children", pending: 1 });
    await commit(database, { ...children[0]!, claimId }, done());
    const woken = await claimOne(database);
    expect(woken.inbox).toMatchObject([{ name: "go", matched: false }]);
    await commit(database, woken, park("go"));
    expect(await parentOf(parent.runId)).toMatchObject({ status: "runnable" });
    await endAll();
    await until("nothing is left", async () => (await claim(database)).runs.length === 0);
  });
});
