import { child, type Duration, job, machine, RunFailed, type, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, store } = database;

/** The deadline of the run has passed, and nobody knows it yet. */
const pass = (runId: string): Promise<unknown> =>
  sql("update extras set deadline_at = clock_timestamp() - interval '1 second' where run_id = $1", [runId]);
const failed = async (runId: string): Promise<void> => {
  const error = await pawl.result(runId).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(RunFailed);
  expect((error as RunFailed).error).toMatchObject({ name: "DeadlineExceeded", code: "DeadlineExceeded" });
};
const holderOf = async (runId: string): Promise<string | null> =>
  (await sql<{ locked_by: string | null }>("select locked_by from runs where id = $1", [runId]))[0]!
    .locked_by;
const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(signal.reason));
  });

const parked = job({ name: "parked", queue: "nobody", run: () => 0 });
const waiting = machine({
  name: "waiting",
  state: type<object>(),
  steps: { start: (ctx) => ctx.awaitSignal("never", "end", {}), end: (ctx) => ctx.done() },
});
const sleeping = workflow({ name: "sleeping", run: ({ step }) => step.sleep("long", "1d") });
const slow = job({ name: "slow", queue: "nobody", run: () => "done" });
const parent = machine({
  name: "parent",
  state: type<{ timeout?: Duration }>(),
  steps: {
    start: (ctx) => ctx.spawn("end", [child(slow, undefined, { timeout: ctx.state.timeout })], {}),
    end: (ctx) => ctx.done(ctx.children.map(({ status, error }) => ({ status, code: error?.code }))),
  },
});
const invoking = workflow({
  name: "invoking",
  run: async ({ step }) => {
    const error: unknown = await step
      .invoke("slow", slow, undefined, { timeout: "1h" })
      .catch((caught) => caught);
    return (error as Error).message;
  },
});
await serve([waiting, sleeping, parent, invoking]);

const inPhase = (runId: string, phase: string): Promise<unknown> =>
  until(`it is ${phase}`, async () => (await pawl.runs.get(runId)).phase === phase);

describe("a run past its deadline fails with DeadlineExceeded", () => {
  it("while it waits for a worker", async () => {
    const { runId } = await pawl.start(parked, null, { timeout: 50 });
    await failed(runId);
    expect(await pawl.runs.get(runId)).toMatchObject({ status: "failed", phase: "failed" });
  });

  it("while it waits for a signal, or sleeps", async () => {
    for (const definition of [waiting, sleeping]) {
      const { runId } = await pawl.start(definition, {}, { timeout: "1h" });
      await inPhase(runId, "awaiting_signal");
      await pass(runId);
      await failed(runId);
    }
  });

  it("while it waits for children, which go on; they end without it", async () => {
    const { runId } = await pawl.start(parent, {}, { timeout: "1h" });
    await inPhase(runId, "awaiting_children");
    await pass(runId);
    await failed(runId);
    const { runs } = await pawl.runs.list({ parentId: runId });
    expect(runs.map(({ status }) => status)).toEqual(["running"]);
    await pawl.runs.cancel(runs[0]!.runId);
    expect((await pawl.runs.get(runId)).status).toBe("failed");
  });

  it("by a sweep elsewhere: the heartbeat tells the worker", async () => {
    const reasons: unknown[] = [];
    const entered = gate();
    const far = job({
      name: "far",
      run: async (ctx) => {
        const reason = aborted(ctx.signal);
        void entered.pass();
        reasons.push(await reason);
      },
    });
    await serve([far], { reapInterval: "1m", heartbeat: "100ms" });
    const { runId } = await pawl.start(far, undefined, { timeout: "1h" });
    await until("it runs", async () => entered.entered() === 1);
    await pass(runId);
    await store.failOverdue([runId]);
    await until("the step has heard", async () => reasons.length === 1);
    await until("it is released", async () => (await holderOf(runId)) === null);
    await failed(runId);
  });

  it("and never begins if it is claimed after its deadline", async () => {
    const { runId } = await pawl.start(slow, undefined, { timeout: "1h", queue: "late" });
    await pass(runId);
    let calls = 0;
    const late = job({ name: "slow", queue: "late", run: () => ++calls });
    await serve([late], { reapInterval: "1h" });
    await failed(runId);
    expect(calls).toBe(0);
  });

  it("and its parent goes on, whether it spawned or invoked it", async () => {
    const spawned = await pawl.start(parent, { timeout: 100 });
    expect(await pawl.result(spawned.runId)).toEqual([{ status: "failed", code: "DeadlineExceeded" }]);
    const invoked = await pawl.start(invoking);
    const children = async (): Promise<string[]> =>
      (await pawl.runs.list({ parentId: invoked.runId })).runs.map(({ runId }) => runId);
    await until("it has invoked", async () => (await children()).length === 1);
    await pass((await children())[0]!);
    expect(await pawl.result(invoked.runId)).toMatch(
      /run \d+ failed: the run did not end within its timeout/,
    );
  });
});

describe("a deadline", () => {
  it("comes from the definition, and the start wins", async () => {
    const hourly = job({ name: "hourly", queue: "nobody", timeout: "1h", run: () => 0 });
    const lengthOf = async (runId: string): Promise<number> => {
      const { deadlineAt, eligibleAt } = await pawl.runs.get(runId);
      return deadlineAt!.getTime() - eligibleAt!.getTime();
    };
    expect(await lengthOf((await pawl.start(hourly)).runId)).toBe(3_600_000);
    expect(await lengthOf((await pawl.start(hourly, undefined, { timeout: "5m" })).runId)).toBe(300_000);
    // From when it may begin, not from the call.
    const delayed = await pawl.start(hourly, undefined, { delay: "2h" });
    expect(await lengthOf(delayed.runId)).toBe(3_600_000);
  });

  it("of a start by name is that of the registered definition, also if it is registered later", async () => {
    const before = await pawl.start("by-name", null);
    expect((await pawl.runs.get(before.runId)).deadlineAt).toBeNull();
    const byName = job({ name: "by-name", timeout: "1d", run: (ctx) => aborted(ctx.signal).then(() => 0) });
    await serve([byName], { drainTimeout: 0 });
    await until("it is placed", async () => (await pawl.runs.get(before.runId)).deadlineAt !== null);
    const after = await pawl.start("by-name", null);
    const { deadlineAt, startedAt } = await pawl.runs.get(after.runId);
    expect(deadlineAt!.getTime() - startedAt.getTime()).toBe(86_400_000);
    await Promise.all([pawl.runs.cancel(before.runId), pawl.runs.cancel(after.runId)]);
  });

  it("frees the partition key only when the worker has released the run, and its unique key at once", async () => {
    const open = gate();
    const order: string[] = [];
    const keyed = job({
      name: "keyed",
      run: async (_ctx, name: string) => {
        order.push(`${name} begins`);
        if (name === "first") await open.pass();
        order.push(`${name} ends`);
      },
    });
    await serve([keyed], { drainTimeout: "1h" });
    const keys = { partitionKey: "one", uniqueKey: "unique" };
    const first = await pawl.start(keyed, "first", { ...keys, timeout: "1h" });
    await until("it runs", async () => open.entered() === 1);
    await pass(first.runId);
    await failed(first.runId);
    const second = await pawl.start(keyed, "second", keys);
    expect(second.created).toBe(true);
    expect(await holderOf(first.runId)).not.toBeNull();
    expect(order).toEqual(["first begins"]);
    open.open();
    await pawl.result(second.runId);
    expect(order).toEqual(["first begins", "first ends", "second begins", "second ends"]);
  });

  it("of many runs at once fails each of them once", async () => {
    const started = await pawl.startMany(
      parked,
      Array.from({ length: 2_500 }, (_, n) => ({ input: n, timeout: 1, tags: { burst: "yes" } })),
    );
    await until("all have failed", async () => {
      return (
        (await pawl.runs.count({ tags: { burst: "yes" }, error: "DeadlineExceeded" })) === started.length
      );
    });
  });
});
