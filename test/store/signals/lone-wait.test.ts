import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { journalOf } from "../../support/journal.js";
import { claimFlow, executed, ran, record, sleepFor, suspend, waitFor } from "../../support/record.js";
import { commit, endRunsAfterEach, register } from "../../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
endRunsAfterEach(database);

const signal = async (runId: string, name: string, payload: unknown, dedupKey: string | null = null) =>
  (await store.signal([{ runId, name, payload: JSON.stringify(payload), dedupKey }], { patient: false }))
    .verdicts;

/** A workflow that has recorded "before" and is suspended for these steps. */
async function suspendedFor(
  ...steps: readonly { name: string; change: ReturnType<typeof waitFor> }[]
): Promise<string> {
  const run = await executed(database);
  await record(database, run, "before", 1, ran("b"));
  let seq = 1;
  for (const { name, change } of steps) await record(database, run, name, ++seq, change);
  const names = steps.flatMap(({ change }) => (change.op === "wait" ? [change.event] : []));
  const dueAt = new Date(Date.now() + 3_600_000).toISOString();
  const transition = { ...suspend(names, { dueAt }), steps: steps.map(({ name }) => name) };
  expect(await commit(database, run, transition)).toMatchObject({ kind: "committed" });
  return run.runId;
}

const makeDue = async (runId: string): Promise<void> => {
  await sql("update steps set due_at = clock_timestamp() where run_id = $1 and due_at is not null", [runId]);
  await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
};

const row = (name: string, seq: number | null, output: unknown) =>
  expect.objectContaining({ name, seq, output, completed: seq !== null });

describe("a workflow that waits for one thing alone", () => {
  it("has its signal recorded by who sends it, and consumed", async () => {
    const runId = await suspendedFor({ name: "paid", change: waitFor("payment") });
    expect(await signal(runId, "payment", { euros: 5 }, "once")).toEqual(["delivered"]);
    expect(await journalOf(database, runId)).toEqual([row("before", 1, "b"), row("paid", 2, { euros: 5 })]);
    const { journal, waiting } = await claimFlow(database);
    expect(journal).toMatchObject([{ name: "before" }, { name: "paid", seq: 2, output: { euros: 5 } }]);
    expect(waiting ?? []).toEqual([]);
    // the dedup key outlives it
    expect(await signal(runId, "payment", { euros: 6 }, "once")).toEqual(["duplicate"]);
    expect(
      await sql("select payload, consumed_at is not null as consumed from signals where run_id = $1", [
        runId,
      ]),
    ).toEqual([{ payload: null, consumed: true }]);
  });

  it("has its sleep recorded by the claim that its time brings", async () => {
    const runId = await suspendedFor({ name: "nap", change: sleepFor(3_600_000) });
    await makeDue(runId);
    const { journal } = await claimFlow(database);
    expect(journal).toMatchObject([{ name: "before" }, { name: "nap", seq: 2, output: null }]);
    expect(await journalOf(database, runId)).toEqual([row("before", 1, "b"), row("nap", 2, null)]);
  });

  it("has its timeout recorded likewise", async () => {
    const runId = await suspendedFor({ name: "paid", change: waitFor("payment", { timeoutMs: 3_600_000 }) });
    await makeDue(runId);
    await claimFlow(database);
    expect(await journalOf(database, runId)).toEqual([row("before", 1, "b"), row("paid", 2, null)]);
  });

  it("is left alone by a signal that it does not wait for", async () => {
    const runId = await suspendedFor({ name: "paid", change: waitFor("payment") });
    expect(await signal(runId, "news", {})).toEqual(["delivered"]);
    expect(await journalOf(database, runId)).toEqual([row("before", 1, "b"), row("paid", null, null)]);
  });
});

describe("a workflow that waits for several things", () => {
  it("decides itself which came first: a signal stays in the inbox", async () => {
    const runId = await suspendedFor(
      { name: "paid", change: waitFor("payment") },
      { name: "nap", change: sleepFor(3_600_000) },
    );
    expect(await signal(runId, "payment", { euros: 5 })).toEqual(["delivered"]);
    expect(await journalOf(database, runId)).toEqual([
      row("before", 1, "b"),
      row("nap", null, null),
      row("paid", null, null),
    ]);
    expect((await claimFlow(database)).waiting).toEqual(["payment"]);
  });

  it("decides itself also when its time has come", async () => {
    const runId = await suspendedFor(
      { name: "paid", change: waitFor("payment", { timeoutMs: 3_600_000 }) },
      { name: "nap", change: sleepFor(3_600_000) },
    );
    await makeDue(runId);
    await claimFlow(database);
    expect(await journalOf(database, runId)).toEqual([
      row("before", 1, "b"),
      row("nap", null, null),
      row("paid", null, null),
    ]);
  });
});
