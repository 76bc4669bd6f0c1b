import { ChildFailed, job, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

const broken = job({
  name: "broken",
  maxAttempts: 1,
  run: () => {
    throw new Error("out of order");
  },
});

async function failedRun(options: { tags?: Record<string, string>; idempotencyKey?: string } = {}) {
  const { runId } = await pawl.start(broken, undefined, options);
  await until("it has failed", async () => (await pawl.runs.get(runId)).status === "failed");
  return runId;
}

describe("a rerun with an idempotency key", () => {
  it("starts one run, however often and from however many callers it is sent", async () => {
    await serve([broken]);
    const runId = await failedRun({ idempotencyKey: "started" });
    const rerun = () => pawl.runs.rerun(runId, { idempotencyKey: "ticket-7" });
    const all = await Promise.all(Array.from({ length: 8 }, rerun));
    expect(all.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(all.map((one) => one.runId)).size).toBe(1);
    expect(await rerun()).toEqual({ runId: all[0]!.runId, created: false });
    const { actions } = await pawl.actions.list({ target: runId });
    expect(actions.map(({ action }) => action)).toEqual(["runs.rerun"]);
    expect(await pawl.runs.get(all[0]!.runId)).toMatchObject({ idempotencyKey: "ticket-7", rerunOf: runId });

    const other = await pawl.runs.rerun(runId, { idempotencyKey: "ticket-8" });
    expect(other).toEqual({
      runId: expect.not.stringMatching(new RegExp(`^${all[0]!.runId}$`)),
      created: true,
    });
  });

  it("is refused if a run that does not repeat this one has the key, or if the key is not valid", async () => {
    const runId = await failedRun({ idempotencyKey: "of-a-start" });
    const rerun = (options: object) => pawl.runs.rerun(runId, options);
    await expect(rerun({ idempotencyKey: "of-a-start" })).rejects.toMatchObject({
      code: "KeyConflict",
      message: `the idempotency key "of-a-start" belongs to run ${runId}, which is no rerun of run ${runId}: use another key`,
    });
    await expect(rerun({ idempotencyKey: "" })).rejects.toThrow(/idempotencyKey/);
    await expect(rerun({ idempotencyKey: "schedule/x" })).rejects.toThrow(
      /reserved for the runs of schedules/,
    );
    expect((await pawl.runs.get(runId)).rerunAs).toBeNull();
    const inBulk = { where: { name: "broken" }, action: "rerun", idempotencyKey: "k" } as const;
    await expect(pawl.runs.bulk(inBulk)).rejects.toThrow(/idempotencyKey/);
  });
});

describe("tags", () => {
  it("of a run are those of its reruns, single or in bulk, and bulk finds runs by them", async () => {
    const tags = { customer: "42", plan: "pro" };
    const runId = await failedRun({ tags });
    await failedRun({ tags: { customer: "43" } });
    const single = await pawl.runs.rerun(runId);
    expect((await pawl.runs.get(single.runId)).tags).toEqual(tags);
    await until("it has failed", async () => (await pawl.runs.get(single.runId)).status === "failed");
    const { id, counted } = await pawl.runs.bulk({
      where: { name: "broken", tags: { customer: "42" } },
      action: "rerun",
    });
    expect(counted).toBe(2);
    await until("it is through", async () => (await pawl.bulk.get(id)).completedAt);
    const { results } = await pawl.bulk.results(id);
    expect(results.map((one) => one.runId)).toEqual([runId, single.runId]);
    for (const { rerunId } of results) expect((await pawl.runs.get(rerunId!)).tags).toEqual(tags);
    expect(await pawl.runs.count({ tags: { plan: "pro" } })).toBe(4);
    expect(await pawl.runs.count({ tags: { customer: "43" } })).toBe(1);
  });
});

describe("a rerun of a workflow that was cancelled while it waited for an invoked run", () => {
  it("starts another child, unless the child has a key: then the error names the first one", async () => {
    const held = gate();
    const child = job({ name: "child", run: () => held.pass().then(() => "paid") });
    const parent = workflow({
      name: "parent",
      run: async ({ step, originRunId }, { keyed }: { keyed: boolean }) => {
        const options = keyed ? { idempotencyKey: `${originRunId}/pay` } : {};
        try {
          return await step.invoke("pay", child, undefined, options);
        } catch (error) {
          return error instanceof ChildFailed ? { adopted: error.runId } : "?";
        }
      },
    });
    await serve([child, parent]);
    const rerunOf = async (keyed: boolean) => {
      const { runId } = await pawl.start(parent, { keyed });
      const first = await until("it waits", async () => (await pawl.runs.steps(runId))[0]?.childId);
      await pawl.runs.cancel(runId);
      const { runId: again } = await pawl.runs.rerun(runId);
      return { first, again };
    };
    const plain = await rerunOf(false);
    const second = await until("it waits", async () => (await pawl.runs.steps(plain.again))[0]?.childId);
    expect(second).not.toBe(plain.first);
    const keyed = await rerunOf(true);
    expect(await pawl.result(keyed.again)).toEqual({ adopted: keyed.first });
    held.open();
    expect(await pawl.result(plain.again)).toBe("paid");
  });
});
