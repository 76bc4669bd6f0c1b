import { describe, expect, it } from "vitest";
import type { NewRun } from "../../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../../support/database.js";
import {
  claim,
  claimOne,
  commit,
  done,
  endRunsAfterEach,
  key,
  next,
  park,
  register,
  start,
} from "../../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
endRunsAfterEach(database);

/** A run that waits for "go". */
async function parked(given: Partial<NewRun> = {}, then = park("go")): Promise<string> {
  const [runId] = await start(database, given);
  const run = await claimOne(database, { queue: given.queue ?? "default" });
  expect(await commit(database, run, then)).toMatchObject({ kind: "committed" });
  return runId!;
}

let lastClaim = 5_000;

async function signalOffering(
  runId: string,
  { workerId = "worker", queues = ["default", "other"], name = "go", dedupKey = null as string | null } = {},
) {
  const claimId = String(++lastClaim);
  const sent = [{ runId, name, payload: '{"n":1}', dedupKey }];
  return {
    claimId,
    ...(await store.signal(sent, { patient: false, offer: { workerId, claimId, queues } })),
  };
}

const statusOf = async (runId: string): Promise<string> =>
  (await sql<{ status: string }>("select status from runs where id = $1", [runId]))[0]!.status;

describe("a lone signal that ends a wait", () => {
  it("hands the run over, claimed, with the signal in its inbox", async () => {
    const runId = await parked({ queue: "other" });
    const { verdicts, handed, claimable, claimId } = await signalOffering(runId);
    expect(verdicts).toEqual(["delivered"]);
    expect(claimable).toEqual([]);
    expect(handed).toMatchObject({
      queue: "other",
      run: {
        runId,
        step: "woken",
        timedOut: false,
        inboxSeq: 1,
        inbox: [{ seq: 1, name: "go", payload: { n: 1 }, matched: true }],
      },
    });
    expect(await statusOf(runId)).toBe("executing");
    const consuming = next("on", null, { consumed: [1] });
    expect(await commit(database, { ...handed!.run, claimId }, consuming)).toMatchObject({
      kind: "committed",
    });
    expect(await sql("select 1 from signals where run_id = $1", [runId])).toEqual([]);
  });

  it("is a duplicate the second time and hands nothing over", async () => {
    const runId = await parked();
    const { handed, claimId } = await signalOffering(runId, { dedupKey: "once" });
    await commit(database, { ...handed!.run, claimId }, park("go", { shown: [1] }));
    expect(await signalOffering(runId, { dedupKey: "once" })).toMatchObject({
      verdicts: ["duplicate"],
      handed: null,
    });
    expect(await statusOf(runId)).toBe("awaiting_signal");
  });

  it.each([
    ["the queue has no slot", () => parked(), { queues: ["other"] }],
    ["the worker is unknown", () => parked(), { workerId: "nobody" }],
    ["it has a partition key", () => parked({ partitionKey: "k" }), {}],
  ])("only makes it claimable if %s", async (_, begin, offer) => {
    const runId = await begin();
    const { verdicts, handed, claimable } = await signalOffering(runId, offer);
    expect({ verdicts, handed }).toEqual({ verdicts: ["delivered"], handed: null });
    expect(claimable).toMatchObject([{ queue: "default", priority: 0 }]);
    expect(await statusOf(runId)).toBe("runnable");
    expect((await claimOne(database)).runId).toBe(runId);
  });

  it("only makes it claimable if the worker's lease has ended, or it does not serve the run", async () => {
    await register(database, "dead");
    await sql("update workers set seen_at = seen_at - interval '1 day' where id = 'dead'");
    const runId = await parked();
    expect(await signalOffering(runId, { workerId: "dead" })).toMatchObject({ handed: null });
    expect(await statusOf(runId)).toBe("runnable");
    await sql("update runs set status = 'done', completed_at = clock_timestamp() where id = $1", [runId]);

    const foreign = await parked();
    await sql("update runs set version = 2 where id = $1", [foreign]);
    expect(await signalOffering(foreign)).toMatchObject({ verdicts: ["delivered"], handed: null });
    expect(await statusOf(foreign)).toBe("runnable");
  });

  it("leaves a run that waits for something else, or executes, where it is", async () => {
    const waiting = await parked();
    expect(await signalOffering(waiting, { name: "stay" })).toMatchObject({
      verdicts: ["delivered"],
      handed: null,
      claimable: [],
    });
    expect(await statusOf(waiting)).toBe("awaiting_signal");
    const [executing] = await start(database, {});
    const run = await claimOne(database);
    expect(await signalOffering(executing!)).toMatchObject({
      verdicts: ["delivered"],
      handed: null,
      claimable: [],
    });
    expect(await commit(database, run, done())).toMatchObject({ kind: "committed" });
    expect(await signalOffering(executing!)).toMatchObject({ verdicts: ["ended"], handed: null });
    expect(await signalOffering("6400000")).toMatchObject({ verdicts: ["not_found"], handed: null });
  });

  it("gives up a unique key that was taken meanwhile, by the general way", async () => {
    const scope = { uniqueKey: key("u"), uniqueScope: ["runnable", "executing"] as const };
    const runId = await parked(scope);
    const [holder] = await start(database, { ...scope, delayMs: 60_000 });
    expect(await signalOffering(runId)).toMatchObject({ verdicts: ["delivered"], handed: null });
    const [row] = await sql<{ unique_key: unknown }>("select unique_key from runs where id = $1", [runId]);
    expect(row!.unique_key).toBeNull();
    const { runs } = await claim(database);
    expect(runs.map((run) => run.runId)).toEqual([runId]);
    expect(await statusOf(holder!)).toBe("runnable");
  });
});
