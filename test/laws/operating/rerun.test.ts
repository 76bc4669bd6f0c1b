import { child, job, machine, signal, type, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const statusIs = (runId: string, status: string) =>
  until(`run ${runId} is ${status}`, async () => (await pawl.runs.get(runId)).status === status);
const failed = (runId: string) => statusIs(runId, "failed");

describe("a rerun of a job", () => {
  it("has its input, or another one, and all its attempts", async () => {
    let isBroken = true;
    const attempts: number[] = [];
    const fetch = job({
      name: "fetch",
      maxAttempts: 2,
      backoff: () => 0,
      run: (ctx, input: { page: number }) => {
        attempts.push(ctx.attempt);
        if (isBroken) throw new Error("unreachable");
        return input.page;
      },
    });
    await serve([fetch]);
    const { runId } = await pawl.start(fetch, { page: 3 });
    await failed(runId);
    const again = await pawl.runs.rerun(runId);
    await failed(again.runId);
    expect(attempts).toEqual([0, 1, 0, 1]);
    isBroken = false;
    const mended = await pawl.runs.rerun(again.runId, { input: { page: 4 } });
    expect(await pawl.result(mended.runId)).toBe(4);
    await expect(pawl.runs.rerun(runId, { from: "fetch" })).rejects.toThrow(/is a job, which has no steps/);
    const anew = await pawl.runs.rerun(runId, { from: "start" });
    expect(await pawl.result(anew.runId)).toBe(3);
  });

  it("keeps queue, priority, partition key, rate limit and retention, but no unique or idempotency key", async () => {
    const keyed = job({
      name: "keyed",
      maxAttempts: 1,
      run: () => {
        throw new Error("refused");
      },
    });
    await serve([keyed], { queues: { default: 2, slow: 2 } });
    await pawl.limits.set("keyed-limit", { allowed: 1000, period: "1s" });
    const { runId } = await pawl.start(keyed, undefined, {
      queue: "slow",
      priority: 3,
      partitionKey: "tenant-1",
      rateLimit: { name: "keyed-limit", key: "a" },
      weight: 2,
      retention: "3d",
      uniqueKey: "only",
      idempotencyKey: "once",
    });
    await failed(runId);
    const rerun = await pawl.runs.rerun(runId);
    await failed(rerun.runId);
    const columns =
      "queue, priority, partition_key, rate_limit, weight, retention::text, unique_key, idempotency_key, parent_id";
    const [row] = await sql(`select ${columns} from runs where id = $1`, [rerun.runId]);
    expect(row).toEqual({
      queue: "slow",
      priority: 3,
      partition_key: "tenant-1",
      rate_limit: "keyed-limit:a",
      weight: 2,
      retention: "72:00:00",
      unique_key: null,
      idempotency_key: null,
      parent_id: null,
    });
  });

  it("of a child is a run of its own: the parent has got its answer and gets no second one", async () => {
    let isBroken = true;
    const part = job({
      name: "part",
      maxAttempts: 1,
      run: () => {
        if (isBroken) throw new Error("refused");
        return "mended";
      },
    });
    const whole = machine({
      name: "whole",
      steps: {
        start: (ctx) => ctx.spawn("joined", [child(part)], ctx.state),
        joined: (ctx) => ctx.done(ctx.children.map(({ status }) => status)),
      },
    });
    await serve([part, whole]);
    const { runId } = await pawl.start(whole, {});
    expect(await pawl.result(runId)).toEqual(["failed"]);
    const { runs } = await pawl.runs.list({ parentId: runId });
    isBroken = false;
    const rerun = await pawl.runs.rerun(runs[0]!.runId);
    expect(await pawl.result(rerun.runId)).toBe("mended");
    expect((await pawl.runs.get(rerun.runId)).parentId).toBeNull();
    expect((await pawl.runs.get(runId)).output).toEqual(["failed"]);
  });
});

describe("a chain of reruns", () => {
  it("keeps ctx.originRunId in jobs, machines and workflows, and links each run to its neighbours", async () => {
    let isBroken = true;
    const seen: string[][] = [];
    const look = (ctx: { runId: string; originRunId: string }): void => {
      seen.push([ctx.runId, ctx.originRunId]);
      if (isBroken) throw new Error("out of order");
    };
    const definitions = [
      job({ name: "origin-job", maxAttempts: 1, run: look }),
      machine({ name: "origin-machine", steps: { start: (ctx) => (look(ctx), ctx.done()) } }),
      workflow({ name: "origin-workflow", run: async (ctx) => look(ctx) }),
    ];
    await serve(definitions);
    for (const { name } of definitions) {
      isBroken = true;
      seen.length = 0;
      const first = await pawl.start(name, {});
      await failed(first.runId);
      const second = await pawl.runs.rerun(first.runId);
      await failed(second.runId);
      isBroken = false;
      const third = await pawl.runs.rerun(second.runId);
      await pawl.result(third.runId);
      expect(seen).toEqual([first, second, third].map(({ runId }) => [runId, first.runId]));
      expect((await pawl.why(first.runId)).text).toContain(`it runs again as run ${second.runId}`);
      const links = await Promise.all(
        [first, second, third].map(async ({ runId }) => {
          const { rerunOf, rerunAs, originRunId } = await pawl.runs.get(runId);
          return { rerunOf, rerunAs, originRunId };
        }),
      );
      expect(links).toEqual([
        { rerunOf: null, rerunAs: second.runId, originRunId: first.runId },
        { rerunOf: first.runId, rerunAs: third.runId, originRunId: first.runId },
        { rerunOf: second.runId, rerunAs: null, originRunId: first.runId },
      ]);
    }
  });
});

describe("a rerun of a machine", () => {
  const steps: string[] = [];
  let isBroken = true;
  const order = machine({
    name: "order",
    state: type<{ id: number; paid?: number }>(),
    steps: {
      start: (ctx) => (steps.push("start"), ctx.next("pay", { ...ctx.state, paid: 10 })),
      pay: (ctx) => (steps.push("pay"), ctx.next("ship", ctx.state)),
      ship: (ctx) => {
        steps.push("ship");
        if (isBroken) throw new Error("no stock");
        return ctx.done(ctx.state);
      },
    },
  });

  async function failAtShip(): Promise<string> {
    isBroken = true;
    const { runId } = await pawl.start(order, { id: 1 });
    await failed(runId);
    isBroken = false;
    steps.length = 0;
    return runId;
  }

  it("begins at the failed step with the stored state", async () => {
    await serve([order]);
    const rerun = await pawl.runs.rerun(await failAtShip());
    expect(await pawl.result(rerun.runId)).toEqual({ id: 1, paid: 10 });
    expect(steps).toEqual(["ship"]);
  });

  it("begins at the failed step with an edited state, at another step, or anew with another input", async () => {
    await serve([order]);
    const runId = await failAtShip();
    const edited = await pawl.runs.rerun(runId, { state: { id: 1, paid: 99 } });
    expect(await pawl.result(edited.runId)).toEqual({ id: 1, paid: 99 });
    expect(steps.splice(0)).toEqual(["ship"]);
    const earlier = await pawl.runs.rerun(runId, { from: "pay" });
    expect(await pawl.result(earlier.runId)).toEqual({ id: 1, paid: 10 });
    expect(steps.splice(0)).toEqual(["pay", "ship"]);
    const anew = await pawl.runs.rerun(runId, { from: "start", input: { id: 2 } });
    expect(await pawl.result(anew.runId)).toEqual({ id: 2, paid: 10 });
    expect(steps.splice(0)).toEqual(["start", "pay", "ship"]);
    await expect(pawl.runs.rerun(runId, { input: { id: 2 } })).rejects.toThrow(
      /only its first step reads the input/,
    );
  });

  it("at a step that it does not have fails with the steps that it has", async () => {
    await serve([order]);
    const rerun = await pawl.runs.rerun(await failAtShip(), { from: "pack" });
    await failed(rerun.runId);
    expect((await pawl.runs.get(rerun.runId)).error?.message).toMatch(
      /"pack".*its steps are start, pay, ship/,
    );
  });

  it("sees the same awaited signals and the same children as the step that failed", async () => {
    let broken = true;
    const part = job({ name: "gathered-part", run: (_ctx, input: number) => input * 10 });
    const gathers = machine({
      name: "gathers",
      signals: { paid: signal<{ euros: number }>(), other: signal<object>() },
      steps: {
        start: (ctx) => ctx.awaitSignal("paid", "join", ctx.state),
        join: (ctx) => {
          if (broken) throw new Error("out of order");
          return ctx.spawn("end", [child(part, 1), child(part, 2)], {
            euros: ctx.awaited.map(({ payload }) => payload),
            inbox: ctx.inbox.map(({ name }) => name),
            timedOut: ctx.timedOut,
          });
        },
        end: (ctx) => {
          if (broken) throw new Error("out of order");
          return ctx.done({ state: ctx.state, children: ctx.children.map(({ output }) => output) });
        },
      },
    });
    await serve([gathers, part]);
    const { runId } = await pawl.start(gathers, {});
    await pawl.signal(runId, "other", {});
    await pawl.signal(runId, "paid", { euros: 5 });
    await failed(runId);
    expect(await sql("select name from signals where run_id = $1", [runId])).toEqual([]);
    const still = await pawl.runs.rerun(runId);
    await failed(still.runId);
    broken = false;
    const second = await pawl.runs.rerun(still.runId);
    expect(await pawl.result(second.runId)).toEqual({
      state: { euros: [{ euros: 5 }], inbox: ["paid"], timedOut: false },
      children: [10, 20],
    });
  });

  it("sees the children of the failed run after a failure behind a spawn, and they are kept until then", async () => {
    let broken = true;
    const part = job({ name: "spawned-part", run: (_ctx, input: number) => input * 10 });
    const spawns = machine({
      name: "spawns",
      steps: {
        start: (ctx) =>
          ctx.spawn("end", [child(part, 1, { retention: 0 }), child(part, 2, { retention: 0 })], {}),
        end: (ctx) => {
          if (broken) throw new Error("out of order");
          return ctx.done(ctx.children.map(({ output }) => output));
        },
      },
    });
    await serve([spawns, part]);
    const { runId } = await pawl.start(spawns, {});
    await failed(runId);
    await sql("select sweep(1000)");
    broken = false;
    const rerun = await pawl.runs.rerun(runId);
    expect(await pawl.result(rerun.runId)).toEqual([10, 20]);
    const again = await pawl.runs.rerun(rerun.runId, { from: "end" });
    expect(await pawl.result(again.runId)).toEqual([]);
  });

  it("of a run that was cancelled while it awaited a signal waits again, and never goes on without it", async () => {
    const pays = machine({
      name: "pays",
      steps: {
        start: (ctx) => ctx.awaitSignal("paid", "ship", ctx.state),
        ship: (ctx) => ctx.done({ awaited: ctx.awaited.length, timedOut: ctx.timedOut }),
      },
    });
    await serve([pays]);
    const { runId } = await pawl.start(pays, {});
    await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
    await pawl.runs.cancel(runId);
    const rerun = await pawl.runs.rerun(runId);
    expect((await pawl.runs.get(rerun.runId)).phase).toBe("awaiting_signal");
    await pawl.signal(rerun.runId, "paid", {});
    expect(await pawl.result(rerun.runId)).toEqual({ awaited: 1, timedOut: false });
  });

  it("of a run that was cancelled while it waited for children needs a step to begin with", async () => {
    const open = gate();
    const slow = job({ name: "slow-part", run: () => open.pass() });
    const joins = machine({
      name: "joins",
      steps: {
        start: (ctx) => ctx.spawn("end", [child(slow)], ctx.state),
        end: (ctx) => ctx.done(ctx.children.length),
      },
    });
    await serve([joins, slow]);
    const { runId } = await pawl.start(joins, {});
    await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_children");
    await pawl.runs.cancel(runId);
    await expect(pawl.runs.rerun(runId)).rejects.toThrow(
      /waited for its children, before step "end": pass from/,
    );
    open.open();
    const rerun = await pawl.runs.rerun(runId, { from: "start" });
    expect(await pawl.result(rerun.runId)).toBe(1);
  });
});
