import { child, job, machine, RunEnded, RunNotFound, signal, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { sql } = database;
const { pawl, serve } = testEngine(database);

/** Nobody executes the run, and it is paused. */
const waitUntilParked = (runId: string): Promise<unknown> =>
  until(`run ${runId} is parked`, async () => {
    const { phase, paused } = await pawl.runs.get(runId);
    return phase !== "executing" && paused !== null;
  });

/** A job of the same queue has run meanwhile: a run that could be claimed would have been. */
const passBy = job({ name: "pass-by", run: () => "passed" });
const letOthersPass = async (): Promise<void> => {
  const { runId } = await pawl.start(passBy, undefined);
  expect(await pawl.result(runId)).toBe("passed");
};

describe("a run that is paused while it is executed", () => {
  it("finishes the step of a machine, begins no other, and goes on where it stopped", async () => {
    const first = gate();
    const begun: string[] = [];
    const stepping = machine({
      name: "stepping",
      steps: {
        start: async (ctx) => {
          begun.push("start");
          await first.pass();
          return ctx.next("middle", { n: 1 });
        },
        middle: (ctx) => {
          begun.push("middle");
          return ctx.next("end", ctx.state);
        },
        end: (ctx) => {
          begun.push("end");
          return ctx.done(ctx.state);
        },
      },
    });
    await serve([stepping, passBy]);
    const { runId } = await pawl.start(stepping, {});
    await until("the step runs", () => first.entered() === 1);
    expect(await pawl.runs.pause(runId, { reason: "an incident", by: "alice" })).toEqual({ changed: true });
    first.open();
    await waitUntilParked(runId);
    await letOthersPass();
    expect(begun).toEqual(["start"]);
    const run = await pawl.runs.get(runId);
    expect(run).toMatchObject({ phase: "runnable", step: "middle", state: { n: 1 }, attempt: 0 });
    expect(run.paused).toEqual({
      scope: "run",
      by: "alice",
      reason: "an incident",
      since: run.paused!.since,
    });
    expect(await pawl.why(runId)).toMatchObject({ reason: "paused", by: "alice", given: "an incident" });

    expect(await pawl.runs.resume(runId)).toEqual({ changed: true });
    expect(await pawl.result(runId)).toEqual({ n: 1 });
    expect(begun).toEqual(["start", "middle", "end"]);
    expect((await pawl.runs.get(runId)).paused).toBeNull();
  });

  it("finishes all running steps of a workflow, begins neither a step nor a wait nor a child, and replays", async () => {
    const slow = gate();
    const fast = gate();
    const begun: string[] = [];
    const note = (name: string) => () => void begun.push(name);
    const charging = workflow({
      name: "charging",
      run: async ({ step }) => {
        const both = await Promise.all([
          step.run("slow", async () => {
            begun.push("slow");
            await slow.pass();
            return "slow";
          }),
          (async () => {
            await step.run("fast", () => fast.pass());
            await step.run("after-fast", note("after-fast"));
          })(),
        ]);
        await step.invoke("child", passBy, undefined);
        return both[0];
      },
    });
    await serve([charging, passBy]);
    const { runId } = await pawl.start(charging, undefined);
    await until("both steps run", () => slow.entered() + fast.entered() === 2);
    await pawl.runs.pause(runId);
    fast.open();
    await until("the fast step is recorded", async () =>
      (await pawl.runs.steps(runId)).some(({ name, status }) => name === "fast" && status === "completed"),
    );
    expect((await pawl.runs.get(runId)).phase).toBe("executing");
    slow.open();
    await waitUntilParked(runId);
    await letOthersPass();
    expect(begun).toEqual(["slow"]);
    const steps = await pawl.runs.steps(runId);
    expect(steps.map(({ name, status }) => [name, status])).toEqual([
      ["fast", "completed"],
      ["slow", "completed"],
    ]);
    await pawl.runs.resume(runId);
    expect(await pawl.result(runId)).toBe("slow");
    expect(begun).toEqual(["slow", "after-fast"]);
    expect((await pawl.runs.get(runId)).attempt).toBe(0);
  });

  it("is done if its present step is the last", async () => {
    const held = gate();
    const lone = job({ name: "lone", run: () => held.pass().then(() => "done") });
    await serve([lone]);
    const { runId } = await pawl.start(lone, undefined);
    await until("the job runs", () => held.entered() === 1);
    await pawl.runs.pause(runId);
    expect(await pawl.why(runId)).toMatchObject({ reason: "executing" });
    held.open();
    expect(await pawl.result(runId)).toBe("done");
    const [row] = await sql<{ hold: number }>("select hold from runs where id = $1", [runId]);
    expect(row?.hold).toBe(0);
    await expect(pawl.runs.pause(runId)).rejects.toThrow(RunEnded);
    await expect(pawl.runs.resume(runId)).rejects.toThrow(RunEnded);
  });

  it("does not retry a job that fails until it is resumed", async () => {
    const held = gate();
    let attempts = 0;
    const failing = job({
      name: "failing",
      maxAttempts: 2,
      backoff: () => 0,
      run: async () => {
        if (++attempts === 2) return attempts;
        await held.pass();
        throw new Error("once");
      },
    });
    await serve([failing, passBy]);
    const { runId } = await pawl.start(failing, undefined);
    await until("the job runs", () => held.entered() === 1);
    await pawl.runs.pause(runId);
    held.open();
    await waitUntilParked(runId);
    await letOthersPass();
    expect(attempts).toBe(1);
    await pawl.runs.resume(runId);
    expect(await pawl.result(runId)).toBe(2);
  });
});

describe("a run that is paused while it waits", () => {
  it("accepts signals and stays; resumed, it has them", async () => {
    const asking = machine({
      name: "asking",
      signals: { answer: signal<{ n: number }>() },
      steps: {
        start: (ctx) => ctx.awaitSignal("answer", "end", {}),
        end: (ctx) => ctx.done(ctx.awaited[0]?.payload ?? null),
      },
    });
    await serve([asking, passBy]);
    const { runId } = await pawl.start(asking, {});
    await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
    await pawl.runs.pause(runId);
    expect(await pawl.signal(runId, "answer", { n: 42 })).toMatchObject({ delivered: true });
    await letOthersPass();
    expect((await pawl.runs.get(runId)).phase).toBe("runnable");
    await pawl.runs.resume(runId);
    expect(await pawl.result(runId)).toEqual({ n: 42 });
  });

  it("lets its timers wait: what fell due meanwhile is due at once when it is resumed", async () => {
    const sleeping = workflow({
      name: "sleeping",
      run: async ({ step }) => {
        await step.sleep("nap", "1h");
        return "awake";
      },
    });
    await serve([sleeping, passBy]);
    const { runId } = await pawl.start(sleeping, undefined);
    await until("it sleeps", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
    await pawl.runs.pause(runId);
    await sql("update runs set eligible_at = clock() - interval '1 minute' where id = $1", [runId]);
    await sql("update steps set due_at = clock() - interval '1 minute' where run_id = $1", [runId]);
    await letOthersPass();
    expect((await pawl.runs.get(runId)).phase).toBe("awaiting_signal");
    await pawl.runs.resume(runId);
    expect(await pawl.result(runId)).toBe("awake");
  });

  it("keeps its parent waiting, which is not paused by that", async () => {
    const family = machine({
      name: "family",
      steps: {
        start: (ctx) => ctx.spawn("end", [child(passBy, undefined, { delay: "1h" })], {}),
        end: (ctx) => ctx.done(ctx.children?.length ?? 0),
      },
    });
    await serve([family, passBy]);
    const { runId } = await pawl.start(family, {});
    await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_children");
    const { runs } = await pawl.runs.list({ parentId: runId });
    const childId = runs[0]!.runId;
    await pawl.runs.pause(childId);
    await sql("update runs set eligible_at = clock() where id = $1", [childId]);
    await letOthersPass();
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "awaiting_children", paused: null });
    await pawl.runs.resume(childId);
    await pawl.result(runId);
  });

  it("can be cancelled", async () => {
    const { runId } = await pawl.start(passBy, undefined, { delay: "1h" });
    await pawl.runs.pause(runId);
    expect(await pawl.runs.cancel(runId)).toEqual({ cancelled: 1 });
    expect(await pawl.runs.get(runId)).toMatchObject({ status: "cancelled", paused: null });
  });
});

it("pausing twice changes nothing, and neither does resuming what is not paused", async () => {
  const { runId } = await pawl.start(passBy, undefined, { delay: "1h" });
  expect(await pawl.runs.resume(runId)).toEqual({ changed: false });
  expect(await pawl.runs.pause(runId, { by: "alice" })).toEqual({ changed: true });
  expect(await pawl.runs.pause(runId, { by: "bob" })).toEqual({ changed: false });
  expect((await pawl.runs.get(runId)).paused?.by).toContain("alice");
  expect(await pawl.runs.resume(runId)).toEqual({ changed: true });
  expect(await pawl.runs.resume(runId)).toEqual({ changed: false });
  await expect(pawl.runs.pause("64000064")).rejects.toThrow(RunNotFound);
});

it("a pause waits for the transaction of a step that has the run locked", async () => {
  const { runId } = await pawl.start(passBy, undefined, { delay: "1h" });
  const other = await database.connect();
  await other.query("begin");
  await other.query("select 1 from runs where id = $1 for update", [runId]);
  let isPaused = false;
  const pausing = pawl.runs.pause(runId).then((answer) => {
    isPaused = true;
    return answer;
  });
  await pawl.runs.pause((await pawl.start(passBy, undefined, { delay: "1h" })).runId);
  expect(isPaused).toBe(false);
  await other.query("commit");
  expect(await pausing).toEqual({ changed: true });
});
