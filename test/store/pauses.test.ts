import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { claim, claimOne, commit, done, keep, register, start } from "../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
const { pausing } = store;
await register(database, "worker");
const request = { by: "test", reason: null };
const rowOf = async (runId: string): Promise<Record<string, unknown>> =>
  (await sql("select status, step, hold, locked_by, attempt from runs where id = $1", [runId]))[0]!;

describe("a commit that would keep the claim", () => {
  it("of a paused run ends the claim, and the answer says so, also when it was lost and is sent again", async () => {
    const [runId] = await start(database, {});
    const run = await claimOne(database);
    await pausing.pauseRuns([runId!], request);
    expect(await commit(database, run, keep("two"))).toMatchObject({ kind: "committed", paused: true });
    expect(await rowOf(runId!)).toEqual({
      status: "runnable",
      step: "two",
      hold: 16,
      locked_by: null,
      attempt: 0,
    });
    expect(await commit(database, run, keep("two"))).toMatchObject({ kind: "already", paused: true });
    expect(await commit(database, run, done(), { turn: 1 })).toEqual({ kind: "stale" });
    expect((await claim(database)).runs).toEqual([]);
    await pausing.resumeRuns([runId!]);
    const again = await claimOne(database);
    expect(again).toMatchObject({ runId, step: "two", attempt: 0 });
    await commit(database, again, done());
  });

  it("in a batch ends the claims of the paused runs only, also of a paused definition", async () => {
    const ids = await start(database, {}, {}, { name: "other", partitionKey: "k" });
    await store.register({
      workerId: "both",
      leaseMs: 600_000,
      queues: ["default"],
      info: "{}",
      definitions: ["counter", "other"].map((name) => {
        return { name, version: 1, kind: "machine", queue: "default", priority: 0, retentionMs: 1 };
      }),
    });
    const { runs } = await claim(database, {
      workerId: "both",
      limit: 3,
      names: ["counter", "other"],
      versions: [1, 1],
    });
    expect(runs.map(({ runId }) => runId).toSorted()).toEqual(ids.toSorted());
    await pausing.pauseRuns([ids[0]!], request);
    await pausing.addPause({ scope: "definition", name: "other", version: null }, request);
    const claims = await sql<{ id: string; claim_id: string }>(
      "select id, claim_id from runs where id = any ($1)",
      [ids],
    );
    const { verdicts } = await store.commit(
      claims.map(({ id: runId, claim_id: claimId }) => ({
        runId,
        claimId,
        turn: 0,
        inboxSeq: 0,
        parentId: null,
        partitionKey: runId === ids[2] ? "k" : null,
        next: null,
        transition: keep("two"),
      })),
      { patient: true },
    );
    const paused = claims
      .filter((_, index) => verdicts[index]?.kind === "committed" && verdicts[index].paused === true)
      .map(({ id }) => id);
    expect(paused.toSorted()).toEqual([ids[0]!, ids[2]!].toSorted());
    expect(await rowOf(ids[1]!)).toMatchObject({ status: "executing", step: "two", locked_by: "both" });
    expect(await rowOf(ids[2]!)).toMatchObject({ status: "runnable", step: "two", locked_by: null });
    await pausing.removePauses({ scope: "definition", name: "other", version: null });
    for (const id of ids) await store.cancel(id, { reason: null, cascade: false });
  });
});

it("many runs are paused and resumed in one call, each with its own answer", async () => {
  const [one, two, ended] = await start(database, {}, {}, {});
  await store.cancel(ended!, { reason: null, cascade: false });
  const other = await database.connect();
  await other.query("begin");
  await other.query("select 1 from runs where id = $1 for update", [two]);
  const pause = await pausing.pauseRuns([one!, two!, ended!, "640640640"], request);
  expect(pause.runs.map(({ verdict }) => verdict)).toEqual(["changed", "busy", "ended", "not_found"]);
  await other.query("commit");
  expect((await pausing.pauseRuns([one!, two!], request)).runs.map(({ verdict }) => verdict)).toEqual([
    "already",
    "changed",
  ]);
  const resume = await pausing.resumeRuns([one!, two!, ended!]);
  expect(resume.runs.map(({ verdict }) => verdict)).toEqual(["changed", "changed", "ended"]);
  expect(resume.claimable).not.toEqual([]);
  expect((await claim(database, { limit: 10 })).runs.map(({ runId }) => runId)).toEqual([one, two]);
});

it("messages are no runs: they cannot be paused", async () => {
  const [sent] = await store.send([{ queue: "q", body: "1", delayMs: null, group: null, dedupKey: null }], {
    patient: true,
  });
  const { runs } = await pausing.pauseRuns([sent!.id], request);
  expect(runs.map(({ verdict }) => verdict)).toEqual(["not_found"]);
});

it("a paused run in the line of a key is not handed over, and nobody passes it", async () => {
  const keyed = { partitionKey: "line" };
  const ids = await start(database, keyed);
  const first = await claimOne(database);
  ids.push(...(await start(database, keyed)), ...(await start(database, keyed)));
  await pausing.pauseRuns([ids[1]!], request);
  const next = { workerId: "worker", claimId: "77" };
  const { verdicts } = await store.commit(
    [
      {
        runId: first.runId,
        claimId: first.claimId,
        turn: 0,
        inboxSeq: 0,
        parentId: null,
        partitionKey: "line",
        next,
        transition: done(),
      },
    ],
    { patient: true },
  );
  expect(verdicts).toMatchObject([{ kind: "committed", handed: null }]);
  expect((await claim(database, { limit: 10 })).runs).toEqual([]);
  await pausing.resumeRuns([ids[1]!]);
  expect((await claim(database, { limit: 10 })).runs.map(({ runId }) => runId)).toEqual([ids[1]]);
});
