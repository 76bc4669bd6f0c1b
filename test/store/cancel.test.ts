import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import {
  claim,
  claimOne,
  commit,
  commitUntilKnown,
  done,
  park,
  register,
  signal,
  spawn,
  start,
  untilFree,
} from "../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");

const alone = { reason: null, cascade: false };
const cancel = (...given: Parameters<typeof store.cancel>) => untilFree(() => store.cancel(...given));
const holdOf = async (runId: string) =>
  (
    await sql<{ hold: number; locked_by: string | null }>("select hold, locked_by from runs where id = $1", [
      runId,
    ])
  )[0]!;

/** Two runs of one key: the first was claimed once, the second is blocked behind it. */
async function line(partitionKey: string) {
  const [first, second] = await start(database, { partitionKey }, { partitionKey });
  const holder = await claimOne(database);
  expect(holder.runId).toBe(first);
  expect((await claim(database)).runs).toEqual([]);
  expect((await holdOf(second!)).hold).toBe(1);
  return { holder, second: second! };
}

describe("a cancel and the line of a key", () => {
  it("lets the next in with the same call when the first in line is cancelled", async () => {
    const { holder, second } = await line("front");
    await store.release([holder]);
    expect((await holdOf(second)).hold).toBe(1);
    const { claimable } = await store.cancel(holder.runId, alone);
    expect(claimable).toMatchObject([{ queue: "default", priority: 0 }]);
    expect((await holdOf(second)).hold).toBe(0);
    await commit(database, await claimOne(database), done());
  });

  it("lets nobody in while a worker holds the cancelled run, and the next when it lets go", async () => {
    const { holder, second } = await line("held");
    const { claimable } = await store.cancel(holder.runId, alone);
    expect(claimable).toEqual([]);
    await store.repairKeys(null, 100);
    expect(await holdOf(second)).toMatchObject({ hold: 1 });
    expect((await claim(database)).runs).toEqual([]);
    expect(await store.release([holder])).toEqual([holder.runId]);
    expect(await claimOne(database)).toMatchObject({ runId: second });
    await store.cancel(second, alone);
  });

  it("lets nobody go for a claim that is not the one that holds it", async () => {
    const { holder, second } = await line("foreign");
    await store.cancel(holder.runId, alone);
    expect(await store.release([{ runId: holder.runId, claimId: "1" }])).toEqual([]);
    expect(await holdOf(second)).toMatchObject({ hold: 1 });
    await store.release([holder]);
    await commit(database, await claimOne(database), done());
  });
});

describe("a cancel at the same moment as", () => {
  it("the commit of an outcome: exactly one of them counts", async () => {
    for (let round = 0; round < 40; round++) {
      await start(database, {});
      const run = await claimOne(database);
      const committing = async () => {
        if (round % 2 === 1) await new Promise((resolve) => setImmediate(resolve));
        return commitUntilKnown(database, run, done('"won"'));
      };
      const [verdict, answer] = await Promise.all([committing(), cancel(run.runId, alone)]);
      const [stored] = await store.get([run.runId]);
      const pair = `${verdict.kind} ${answer.verdict} ${stored!.phase}`;
      expect(["committed ended done", "stale cancelled cancelled"]).toContain(pair);
      await store.release([run]);
    }
  });

  it("another cancel: one of them has cancelled it, and its reason stays", async () => {
    for (let round = 0; round < 10; round++) {
      const [runId] = await start(database, { delayMs: 3_600_000 });
      const reasons = ["a", "b", "c", "d"];
      const answers = await Promise.all(
        reasons.map((reason) => cancel(runId!, { reason, cascade: round % 2 === 0 })),
      );
      const winners = reasons.filter((_, index) => answers[index]!.verdict === "cancelled");
      expect(winners).toHaveLength(1);
      expect(answers.flatMap(({ runIds }) => runIds)).toEqual([runId]);
      expect(JSON.parse((await store.get([runId!]))[0]!.error!)).toMatchObject({ message: winners[0] });
    }
  });

  it("a signal: it is in no inbox, or cleared with it", async () => {
    for (let round = 0; round < 20; round++) {
      await start(database, {});
      const run = await claimOne(database);
      await commit(database, run, park("go"));
      const [sent, answer] = await Promise.all([signal(database, run.runId, "go"), cancel(run.runId, alone)]);
      expect(["delivered", "ended"]).toContain(sent);
      expect(answer.verdict).toBe("cancelled");
      expect(await sql("select from signals where run_id = $1", [run.runId])).toEqual([]);
    }
    expect((await claim(database)).runs).toEqual([]);
  });

  it("the end of a sibling: the parent goes on once", async () => {
    for (let round = 0; round < 20; round++) {
      await start(database, {});
      const parent = await claimOne(database);
      await commit(database, parent, spawn({}, {}));
      const { runs, claimId } = await claim(database, { limit: 2 });
      const [, answer] = await Promise.all([
        commitUntilKnown(database, { ...runs[0]!, claimId }, done()),
        cancel(runs[1]!.runId, alone),
      ]);
      expect(answer.verdict).toBe("cancelled");
      const woken = await claim(database);
      expect(woken.runs.map(({ runId }) => runId)).toEqual([parent.runId]);
      await commit(database, { ...woken.runs[0]!, claimId: woken.claimId }, done());
      await store.release([{ runId: runs[1]!.runId, claimId }]);
    }
  });
});
