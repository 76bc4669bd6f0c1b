import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { journalOf } from "../support/journal.js";
import {
  anEntry,
  claimFlow,
  executed,
  failedFor,
  type Held,
  invoke,
  ran,
  record,
  sleepFor,
  suspend,
} from "../support/record.js";
import {
  aCommit,
  aRun,
  claimOne,
  commit,
  done,
  endRunsAfterEach,
  key,
  register,
  signal,
  start,
  stop,
} from "../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
endRunsAfterEach(database);

/** A run that has invoked another, which a worker executes. */
async function invoked(given: Parameters<typeof invoke>[0] = {}): Promise<{ parent: Held; kid: Held }> {
  const parent = await executed(database);
  const pending = await record(database, parent, "child", 1, invoke({ name: "kid", ...given }));
  const kid = await claimOne(database, { names: ["kid"] });
  expect(pending).toMatchObject({ kind: "pending", childId: kid.runId });
  return { parent, kid };
}

const statusOf = async (runId: string): Promise<string> =>
  (await sql<{ status: string }>("select status from runs where id = $1", [runId]))[0]!.status;
const repliesTo = (runId: string) =>
  sql<{ name: string; payload: unknown }>(
    "select name, payload from signals where run_id = $1 order by seq",
    [runId],
  );

describe("the reply of an invoked run", () => {
  it("comes into the inbox of its parent in the commit that ends it, and is consumed by the step", async () => {
    const { parent, kid } = await invoked();
    expect(kid.parentId).toBe(parent.runId);
    await commit(database, kid, done('{"n":1}'));
    expect(await repliesTo(parent.runId)).toEqual([
      { name: `~${kid.runId}`, payload: { status: "done", output: { n: 1 }, error: null } },
    ]);
    expect(await record(database, parent, "child", 2, invoke({ name: "kid" }))).toEqual({
      kind: "done",
      seq: 2,
      output: { n: 1 },
      error: null,
    });
    expect(await repliesTo(parent.runId)).toEqual([]);
  });

  it("comes once: a resend of the commit, a cancel or a second end deliver nothing", async () => {
    const { parent, kid } = await invoked();
    expect(await commit(database, kid, done("1"))).toMatchObject({ kind: "committed" });
    expect(await commit(database, kid, done("1"))).toMatchObject({ kind: "already" });
    expect(await commit(database, kid, stop("late"))).toMatchObject({ kind: "already" });
    expect((await store.cancel(kid.runId, { reason: null, cascade: false })).verdict).toBe("ended");
    expect(await repliesTo(parent.runId)).toHaveLength(1);
  });

  it("wakes a parent that waits for it, and no other", async () => {
    const { parent, kid } = await invoked();
    const other = await executed(database);
    await commit(database, other, suspend([`~${parent.runId}`, "go"]));
    await commit(database, parent, suspend([`~${kid.runId}`]));
    const { verdicts, claimable } = await store.commit([aCommit(kid, done())], { patient: true });
    expect(verdicts).toMatchObject([{ kind: "committed" }]);
    expect(claimable).toMatchObject([{ queue: "default" }]);
    expect(await statusOf(parent.runId)).toBe("runnable");
    expect(await statusOf(other.runId)).toBe("awaiting_signal");
  });

  it("that came before the parent suspends lets it go on at once", async () => {
    const { parent, kid } = await invoked();
    await commit(database, kid, done());
    await commit(database, parent, suspend([`~${kid.runId}`]));
    expect(await statusOf(parent.runId)).toBe("runnable");
  });

  it("in the same call as the suspension of its parent wakes it", async () => {
    const { parent, kid } = await invoked();
    const commits = [aCommit(parent, suspend([`~${kid.runId}`])), aCommit(kid, done())];
    for (const { kind } of (await store.commit(commits, { patient: true })).verdicts)
      expect(kind).toBe("committed");
    expect(await statusOf(parent.runId)).toBe("runnable");
  });

  it("does not wake a parent that waits for something else; the step finds it later", async () => {
    const { parent, kid } = await invoked();
    await commit(database, parent, suspend(["go"]));
    await commit(database, kid, stop("broken"));
    expect(await statusOf(parent.runId)).toBe("awaiting_signal");
    await signal(database, parent.runId, "go");
    const again = await claimFlow(database);
    expect(await record(database, again, "child", 2, invoke({ name: "kid" }))).toMatchObject({
      kind: "done",
      output: null,
      error: {
        code: "ChildFailed",
        runId: kid.runId,
        message: `run ${kid.runId} failed: broken`,
        cause: { message: "broken" },
      },
    });
  });

  it("to a parent that has ended is dropped", async () => {
    const { parent, kid } = await invoked();
    await commit(database, parent, done());
    expect(await commit(database, kid, done())).toMatchObject({ kind: "committed" });
    expect(await repliesTo(parent.runId)).toEqual([]);
    expect(await statusOf(parent.runId)).toBe("done");
  });

  it("of a cancelled run says so; cancelling both with cascade leaves none", async () => {
    const one = await invoked();
    await store.cancel(one.kid.runId, { reason: "why not", cascade: false });
    expect(await record(database, one.parent, "child", 2, invoke({ name: "kid" }))).toMatchObject({
      error: { code: "ChildFailed", message: `run ${one.kid.runId} was cancelled: why not` },
    });
    const two = await invoked();
    const { runIds } = await store.cancel(two.parent.runId, { reason: null, cascade: true });
    expect(runIds.toSorted()).toEqual([two.parent.runId, two.kid.runId].toSorted());
    expect(await repliesTo(two.parent.runId)).toEqual([]);
  });

  it("comes however full the inbox is", async () => {
    const { parent, kid } = await invoked();
    const all = Array.from({ length: 10_000 }, () => ({
      runId: parent.runId,
      name: "x",
      payload: "{}",
      dedupKey: null,
    }));
    for (let at = 0; at < all.length; at += 2_000) {
      await store.signal(all.slice(at, at + 2_000), { patient: true });
    }
    expect(await signal(database, parent.runId, "x")).toBe("full");
    await commit(database, kid, done("7"));
    expect(await record(database, parent, "child", 2, invoke({ name: "kid" }))).toMatchObject({ output: 7 });
    expect(await signal(database, parent.runId, "x")).toBe("full");
  });

  it("of several children that end in one call come in one order, each once", async () => {
    const parent = await executed(database);
    const entries = [1, 2, 3].map((n) =>
      anEntry(parent, `child-${n}`, n, invoke({ name: "kid", input: String(n) })),
    );
    expect(await store.record(entries, { patient: true })).toMatchObject(Array(3).fill({ kind: "pending" }));
    const kids = [1, 2, 3].map(() => claimOne(database, { names: ["kid"] }));
    const commits = await Promise.all(kids.map(async (kid) => aCommit(await kid, done((await kid).input!))));
    await store.commit(commits, { patient: true });
    expect(await store.record(entries, { patient: true })).toMatchObject(
      [1, 2, 3].map((output) => ({ output })),
    );
    expect(await repliesTo(parent.runId)).toEqual([]);
  });
});

describe("an invoke", () => {
  it("starts its run in the transaction that records it: rolled back, there is neither", async () => {
    const parent = await executed(database);
    const client = await database.connect();
    await client.query("begin");
    await client.query(
      "select record($1, $2, '{child}', '{invoke}', '{1}', null, null, null, null, $3, null, true)",
      [[parent.runId], [parent.claimId], [JSON.stringify({ children: [aRun({ name: "kid" })] })]],
    );
    await client.query("rollback");
    expect(await journalOf(database, parent.runId)).toEqual([]);
    expect(await sql("select from runs where parent_id = $1", [parent.runId])).toEqual([]);
  });

  it("whose key is taken is over at once, and names the holder", async () => {
    const [holder] = await start(database, { name: "kid", uniqueKey: key("taken") });
    const parent = await executed(database);
    const verdict = await record(
      database,
      parent,
      "child",
      1,
      invoke({ name: "kid", uniqueKey: key("taken") }),
    );
    expect(verdict).toMatchObject({ kind: "done", seq: 1, error: { code: "KeyConflict", runId: holder } });
    expect(await record(database, parent, "child", 2, invoke())).toEqual(verdict);
  });

  it("that the database refuses is recorded as refused", async () => {
    const parent = await executed(database);
    const verdict = await record(
      database,
      parent,
      "child",
      1,
      invoke({ name: "kid", rateLimit: "unset", weight: 1 }),
    );
    expect(verdict).toMatchObject({ kind: "done", seq: 1, error: { code: "InvalidOption" } });
    expect(await record(database, parent, "child", 2, invoke({ name: "kid" }))).toEqual(verdict);
    expect(await sql("select from runs where parent_id = $1", [parent.runId])).toEqual([]);
  });
});

describe("a journal", () => {
  it("of more than 1,000 steps comes in pages, each step once", async () => {
    const run = await executed(database);
    const names = Array.from({ length: 2_300 }, (_, n) => `step-${n}`);
    for (let at = 0; at < names.length; at += 500) {
      const page = names.slice(at, at + 500);
      await store.record(
        page.map((name, n) => anEntry(run, name, at + n + 1, ran(name))),
        { patient: true },
      );
    }
    const read: string[] = [];
    const pages: number[] = [];
    for (let page = await store.journal(run.runId, ""); page.length > 0;) {
      pages.push(page.length);
      for (const { name, output } of page) {
        expect(output).toBe(name);
        read.push(name);
      }
      page = await store.journal(run.runId, page.at(-1)!.name);
    }
    expect(pages).toEqual([1_000, 1_000, 300]);
    expect(read.toSorted()).toEqual(names.toSorted());
    await store.release([run]);
    expect((await claimFlow(database)).journal).toBeNull();
  });

  it("of more than 1 MiB comes in pages, a step of any size in one of them", async () => {
    const run = await executed(database);
    const big = "x".repeat(900_000);
    const texts = [big, "a", big, "b", big];
    for (const [n, text] of texts.entries()) await record(database, run, `step-${n}`, n + 1, ran(text));
    const pages: string[][] = [];
    for (let page = await store.journal(run.runId, ""); page.length > 0;) {
      pages.push(page.map(({ name }) => name));
      page = await store.journal(run.runId, page.at(-1)!.name);
    }
    expect(pages).toEqual([["step-0", "step-1"], ["step-2", "step-3"], ["step-4"]]);
  });

  it("comes along with the claim up to its budget, also if it compresses well", async () => {
    const random = (bytes: number): string =>
      Array.from({ length: bytes }, () => Math.floor(Math.random() * 36).toString(36)).join("");
    for (const [text, isInline] of [
      [random(200_000), true],
      [random(300_000), false],
      ["x".repeat(300_000), false],
      ["x".repeat(200_000), true],
    ] as const) {
      const run = await executed(database);
      await record(database, run, "big", 1, ran(text));
      await store.release([run]);
      const { journal } = await claimOne(database, { names: ["flow"] });
      if (isInline) expect(journal).toMatchObject([{ name: "big", output: text }]);
      else expect(journal).toBeNull();
      await sql(
        "update runs set status = 'done', locked_by = null, completed_at = clock_timestamp() where id = $1",
        [run.runId],
      );
    }
  });

  it("goes with its run when that is swept", async () => {
    const run = await executed(database);
    await record(database, run, "a", 1, ran(1));
    await commit(database, run, done());
    await sql("update runs set expires_at = clock_timestamp() - interval '1 second' where id = $1", [
      run.runId,
    ]);
    expect((await store.sweep(100)).swept).toBeGreaterThanOrEqual(1);
    expect(await sql("select from steps where run_id = $1", [run.runId])).toEqual([]);
  });
});

describe("crashes", () => {
  const crash = async (run: Held): Promise<unknown> => {
    await sql("update runs set locked_by = 'dead' where id = $1", [run.runId]);
    await store.reap(100);
    const [row] = await sql("select attempt, crashes, crash_seq from runs where id = $1", [run.runId]);
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [run.runId]);
    return row;
  };

  it("count from 0 again when the journal has grown since the last one; what is pending is no progress", async () => {
    let run = await executed(database);
    expect(await crash(run)).toEqual({ attempt: 1, crashes: 1, crash_seq: 0 });
    run = await claimFlow(database);
    expect(await crash(run)).toEqual({ attempt: 2, crashes: 2, crash_seq: 0 });
    run = await claimFlow(database);
    await record(database, run, "a", 4, ran(1));
    expect(await crash(run)).toEqual({ attempt: 3, crashes: 1, crash_seq: 4 });
    run = await claimFlow(database);
    await record(database, run, "nap", 5, sleepFor(3_600_000));
    await record(database, run, "b", 6, failedFor("x", 3_600_000));
    expect(await crash(run)).toEqual({ attempt: 4, crashes: 2, crash_seq: 4 });
  });

  it("a release is no crash", async () => {
    const run = await executed(database);
    await record(database, run, "a", 1, ran(1));
    await store.release([run]);
    expect(await sql("select attempt, crashes, crash_seq from runs where id = $1", [run.runId])).toEqual([
      { attempt: 0, crashes: 0, crash_seq: 0 },
    ]);
  });

  it("a suspension forgets them", async () => {
    const first = await executed(database);
    await crash(first);
    const again = await claimFlow(database);
    await commit(database, again, suspend(["go"]));
    expect(await sql("select crashes from runs where id = $1", [first.runId])).toEqual([{ crashes: 0 }]);
  });
});
