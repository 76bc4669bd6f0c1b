import { describe, expect, it } from "vitest";
import type { JournalChange } from "../../packages/pawl/dist/store/journal.js";
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
  waitFor,
} from "../support/record.js";
import { commit, done, endRunsAfterEach, register, signal } from "../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
endRunsAfterEach(database);

const recorded = { kind: "recorded", inboxSeq: null };
const makeDue = (runId: string, name: string): Promise<unknown> =>
  sql("update steps set due_at = clock_timestamp() where run_id = $1 and name = $2", [runId, name]);

describe("the guard of record", () => {
  it.each<[string, (run: Held) => Promise<unknown>]>([
    ["released", (run) => store.release([run])],
    ["cancelled", ({ runId }) => store.cancel(runId, { reason: null, cascade: false })],
    [
      "reaped",
      async ({ runId }) => {
        await sql("update runs set locked_by = 'dead' where id = $1", [runId]);
        expect(await store.reap(100)).toBe(1);
      },
    ],
  ])("a claim that was %s records nothing", async (_what, lose) => {
    const run = await executed(database);
    await lose(run);
    for (const change of [ran(1), sleepFor(0), waitFor("go"), failedFor("x", 0), invoke()]) {
      expect(await record(database, run, "step", 1, change)).toEqual({ kind: "stale" });
    }
    expect(await journalOf(database, run.runId)).toEqual([]);
    expect(await sql("select from runs where parent_id is not null")).toEqual([]);
  });

  it("a claim that was followed by another records nothing, in a batch with others that do", async () => {
    const old = await executed(database);
    await store.release([old]);
    const current = await claimFlow(database);
    expect(current.runId).toBe(old.runId);
    const other = await executed(database);
    const verdicts = await store.record(
      [
        anEntry(old, "a", 1, ran("old")),
        anEntry(current, "a", 1, ran("new")),
        anEntry(other, "a", 1, ran("other")),
      ],
      { patient: true },
    );
    expect(verdicts).toEqual([{ kind: "stale" }, recorded, recorded]);
    expect(await journalOf(database, old.runId)).toMatchObject([{ output: "new" }]);
  });

  it("an unknown run is stale", async () => {
    expect(await record(database, { runId: "999999936", claimId: "1" }, "a", 1, ran(1))).toEqual({
      kind: "stale",
    });
  });

  it("neither looks at nor changes the turn: an outcome can be committed after it", async () => {
    const run = await executed(database);
    expect(await record(database, run, "a", 1, ran(1))).toEqual(recorded);
    expect(await commit(database, run, done())).toMatchObject({ kind: "committed" });
    expect(await record(database, run, "b", 2, ran(1))).toEqual({ kind: "stale" });
  });
});

describe("a resend after a lost reply", () => {
  it("of a completed step is a no-op and answers what is recorded", async () => {
    const run = await executed(database);
    expect(await record(database, run, "a", 1, ran({ n: 1 }))).toEqual(recorded);
    expect(await record(database, run, "a", 1, ran({ n: 1 }))).toEqual({
      kind: "done",
      seq: 1,
      output: { n: 1 },
      error: null,
    });
    expect(await record(database, run, "a", 7, ran({ n: 2 }))).toMatchObject({ seq: 1, output: { n: 1 } });
    expect(await journalOf(database, run.runId)).toMatchObject([{ seq: 1, output: { n: 1 } }]);
  });

  it("of a batch of old and new entries answers each by itself", async () => {
    const run = await executed(database);
    await record(database, run, "old", 1, ran("old"));
    const verdicts = await store.record(
      [
        anEntry(run, "new", 2, ran("new")),
        anEntry(run, "old", 1, ran("changed")),
        anEntry(run, "nap", 3, sleepFor(0)),
      ],
      { patient: true },
    );
    expect(verdicts).toMatchObject([recorded, { kind: "done", output: "old" }, { kind: "done", seq: 3 }]);
  });

  it("of a wait that took a signal takes no second one", async () => {
    const run = await executed(database);
    for (const n of [1, 2]) await signal(database, run.runId, "go", { payload: `{"n":${n}}` });
    for (let sent = 0; sent < 3; sent++) {
      expect(await record(database, run, "w", 1, waitFor("go"))).toMatchObject({
        kind: "done",
        seq: 1,
        output: { n: 1 },
      });
    }
    const left = await sql("select payload from signals where run_id = $1 and consumed_at is null", [
      run.runId,
    ]);
    expect(left).toEqual([{ payload: { n: 2 } }]);
  });

  it("of an invoke starts no second child", async () => {
    const run = await executed(database);
    const first = await record(database, run, "child", 1, invoke({ name: "kid" }));
    expect(first).toMatchObject({ kind: "pending", dueMs: null });
    expect(await record(database, run, "child", 2, invoke({ name: "kid" }))).toEqual(first);
    const children = await sql<{ id: string }>("select id from runs where parent_id = $1", [run.runId]);
    expect(children).toEqual([{ id: (first as { childId: string }).childId }]);
  });

  it("of a retry counts it once", async () => {
    const run = await executed(database);
    for (let sent = 0; sent < 2; sent++) {
      expect(await record(database, run, "a", 1, failedFor("first", 50))).toMatchObject({ kind: "pending" });
    }
    expect(await journalOf(database, run.runId)).toMatchObject([{ attempt: 1, completed: false }]);
  });
});

describe("one bad entry", () => {
  it("never fails its batch: it alone is refused, with the SQLSTATE", async () => {
    const good = await executed(database);
    const bad = await executed(database);
    const badJson = { ...ran(1), output: "{not json" } as JournalChange;
    const badError = { ...failedFor("x", 0), error: "{not json" } as JournalChange;
    const verdicts = await store.record(
      [
        anEntry(good, "a", 1, ran(1)),
        anEntry(bad, "a", 1, badJson),
        anEntry(bad, "b", 2, badError),
        anEntry(bad, "c", 3, ran(3)),
        anEntry(good, "b", 2, sleepFor(0)),
      ],
      { patient: true },
    );
    expect(verdicts).toMatchObject([
      { kind: "recorded" },
      { kind: "failed", code: "22P02" },
      { kind: "failed", code: "22P02" },
      { kind: "recorded" },
      { kind: "done" },
    ]);
    expect((await journalOf(database, bad.runId)).map(({ name }) => name)).toEqual(["c"]);
    expect((await journalOf(database, good.runId)).map(({ name }) => name)).toEqual(["a", "b"]);
  });

  it("a run that somebody holds is busy, also for its later entries; the others are recorded", async () => {
    const held = await executed(database);
    const free = await executed(database);
    const holder = await database.connect();
    await holder.query("begin");
    await holder.query("select from runs where id = $1 for no key update", [held.runId]);
    const entries = [
      anEntry(held, "a", 1, ran(1)),
      anEntry(free, "a", 1, ran(1)),
      anEntry(held, "b", 2, waitFor("go")),
    ];
    const expected = [{ kind: "busy" }, recorded, { kind: "busy" }];
    expect(await store.record(entries, { patient: true })).toEqual(expected);
    expect(await store.record([entries[0]!, entries[2]!], { patient: false })).toEqual([
      { kind: "busy" },
      { kind: "busy" },
    ]);
    await holder.query("commit");
    expect(await record(database, held, "a", 1, ran(1), { patient: false })).toEqual(recorded);
  });

  it("is refused outside READ COMMITTED", async () => {
    const client = await database.connect();
    await client.query("begin isolation level repeatable read");
    const call =
      "select record('{1}', '{1}', '{a}', '{run}', '{1}', '{0}', '{1}', null, null, null, null, true)";
    await expect(client.query(call)).rejects.toThrow("READ COMMITTED");
    await client.query("rollback");
  });
});

describe("due times", () => {
  it("a sleep is pending until the database says that its time has come, whatever the worker believes", async () => {
    const run = await executed(database);
    const first = await record(database, run, "nap", 1, sleepFor(3_600_000));
    expect(first).toMatchObject({ kind: "pending" });
    const { dueMs, dueAt } = first as { dueMs: number; dueAt: string };
    expect(dueMs).toBe(3_600_000);
    const again = await record(database, run, "nap", 2, sleepFor(1));
    expect(again).toMatchObject({ kind: "pending", dueAt });
    await makeDue(run.runId, "nap");
    expect(await record(database, run, "nap", 3, sleepFor(3_600_000))).toMatchObject({
      kind: "done",
      seq: 3,
    });
  });

  it("a sleep until a time is due at that very time", async () => {
    const run = await executed(database);
    const at = new Date(Date.now() + 3_600_000);
    const pending = await record(database, run, "nap", 1, { op: "sleep", delayMs: null, at });
    expect(new Date((pending as { dueAt: string }).dueAt)).toEqual(at);
  });

  it("a retry is not due before its time; asking does not move it", async () => {
    const run = await executed(database);
    const pending = await record(database, run, "a", 1, failedFor("no", 3_600_000));
    expect(pending).toMatchObject({ kind: "pending", dueMs: 3_600_000 });
    const asked = await record(database, run, "a", 2, { op: "due" });
    expect(asked).toMatchObject({ kind: "pending", dueAt: (pending as { dueAt: string }).dueAt });
    expect((asked as { dueMs: number }).dueMs).toBeLessThanOrEqual(3_600_000);
    await makeDue(run.runId, "a");
    const due = await record(database, run, "a", 3, { op: "due" });
    expect((due as { dueMs: number }).dueMs).toBeLessThanOrEqual(0);
    expect(await record(database, run, "a", 4, ran("yes", 1))).toEqual(recorded);
    expect(await journalOf(database, run.runId)).toMatchObject([
      { seq: 4, attempt: 1, output: "yes", error: null },
    ]);
  });

  it("a timeout is recorded only when due, and a signal that is there wins", async () => {
    const run = await executed(database);
    const asked = waitFor("go", { timeoutMs: 3_600_000 });
    expect(await record(database, run, "w", 1, asked)).toMatchObject({ kind: "pending", dueMs: 3_600_000 });
    await makeDue(run.runId, "w");
    await signal(database, run.runId, "go", { payload: '{"n":1}' });
    expect(await record(database, run, "w", 2, asked)).toMatchObject({ kind: "done", output: { n: 1 } });
    expect(await record(database, run, "v", 3, waitFor("go", { timeoutMs: 0 }))).toMatchObject({
      kind: "done",
      output: null,
    });
    await signal(database, run.runId, "go", { payload: '{"n":2}' });
    expect(await record(database, run, "v", 4, waitFor("go"))).toMatchObject({
      kind: "done",
      seq: 3,
      output: null,
    });
  });

  it("what is claimed brings how long its pending steps still have", async () => {
    const run = await executed(database);
    await record(database, run, "nap", 1, sleepFor(3_600_000));
    await record(database, run, "a", 2, failedFor("no", 3_600_000));
    const { dueAt } = (await record(database, run, "nap", 3, sleepFor(1))) as { dueAt: string };
    await commit(database, run, suspend([], { dueAt }));
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [run.runId]);
    const { journal } = await claimFlow(database);
    expect(journal!.map(({ name, seq, attempt }) => [name, seq, attempt]).toSorted()).toEqual([
      ["a", null, 1],
      ["nap", null, 0],
    ]);
    for (const { dueMs } of journal!) {
      expect(dueMs).toBeGreaterThan(3_000_000);
      expect(dueMs).toBeLessThanOrEqual(3_600_000);
    }
  });
});

describe("the inbox", () => {
  it("waits of one batch take signals in the order of their entries, each one of its own", async () => {
    const run = await executed(database);
    for (const n of [1, 2, 3]) await signal(database, run.runId, "go", { payload: `{"n":${n}}` });
    const verdicts = await store.record(
      ["z", "a", "m", "b"].map((name, index) => anEntry(run, name, index + 1, waitFor("go"))),
      { patient: true },
    );
    expect(verdicts).toMatchObject([
      { output: { n: 1 } },
      { output: { n: 2 } },
      { output: { n: 3 } },
      { kind: "pending" },
    ]);
    expect(await sql("select from signals where run_id = $1", [run.runId])).toEqual([]);
  });

  it("consumption and completion are one transaction: a refused entry leaves its signal", async () => {
    const run = await executed(database);
    await signal(database, run.runId, "go");
    const client = await database.connect();
    await client.query("begin");
    await client.query(
      "select record($1, $2, '{w}', '{wait}', '{1}', null, null, null, null, $3, null, true)",
      [[run.runId], [run.claimId], ['{"event":"go"}']],
    );
    await client.query("rollback");
    expect(await journalOf(database, run.runId)).toEqual([]);
    expect(await sql("select name from signals where run_id = $1", [run.runId])).toEqual([{ name: "go" }]);
  });

  it("a signal with a dedup key stays, without its payload; a redelivery is a duplicate", async () => {
    const run = await executed(database);
    await signal(database, run.runId, "go", { payload: '{"n":1}', dedupKey: "k" });
    expect(await record(database, run, "w", 1, waitFor("go"))).toMatchObject({ output: { n: 1 } });
    expect(await signal(database, run.runId, "go", { dedupKey: "k" })).toBe("duplicate");
    expect(await record(database, run, "v", 2, waitFor("go"))).toMatchObject({ kind: "pending" });
  });

  it("a recorded step tells how far the inbox goes, if the worker does not know", async () => {
    const run = await executed(database);
    await signal(database, run.runId, "go");
    expect(await record(database, run, "a", 1, ran(1))).toEqual({ kind: "recorded", inboxSeq: 1 });
    expect(await record(database, run, "b", 2, ran(1), { inboxSeq: 1 })).toEqual(recorded);
  });
});
