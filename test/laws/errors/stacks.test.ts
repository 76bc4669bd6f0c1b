/** Recorded errors say where they were thrown: in runs, steps, children and results. */

import { ChildFailed, type ErrorRecord, job, machine, RunFailed, StepFailed, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

/** User code that fails two calls deep. */
function chargeCard(): never {
  throw new TypeError("no card", { cause: readCause() });
}
function readCause(): Error {
  return new RangeError("the wallet is empty");
}

/** The recorded error of a run that fails. */
async function failureOf(runId: string): Promise<ErrorRecord> {
  const thrown = await pawl.result(runId).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(RunFailed);
  const { error } = await pawl.runs.get(runId);
  expect((thrown as RunFailed).error).toEqual(error);
  expect((thrown as RunFailed).cause).toEqual(error);
  return error!;
}

/** The stack names this file and the function, and no file of Pawl. */
function expectUserFrames(stack: string | null | undefined, first: string, fn: string): void {
  expect(stack?.split("\n")[0]).toBe(first);
  expect(stack).toMatch(new RegExp(String.raw`^    at ${fn} \(.*stacks\.test\.[jt]s:\d+:\d+\)$`, "m"));
  expect(stack).not.toMatch(/packages\/pawl\/(?:src|dist)|node:internal/);
}

describe("the stack of a failure is recorded without the frames of Pawl", () => {
  it("for a job, with the stack of its cause", async () => {
    const charge = job({ name: "charge", maxAttempts: 1, run: () => chargeCard() });
    await serve([charge]);
    const error = await failureOf((await pawl.start(charge, null)).runId);
    expectUserFrames(error.stack, "TypeError: no card", "chargeCard");
    expectUserFrames(error.cause?.stack, "RangeError: the wallet is empty", "readCause");
  });

  it("for a job that will be retried", async () => {
    const patient = job({ name: "patient", backoff: () => "1h", run: () => chargeCard() });
    await serve([patient]);
    const { runId } = await pawl.start(patient, null);
    const error = await until("it was tried", async () => (await pawl.runs.get(runId)).error);
    expectUserFrames(error?.stack, "TypeError: no card", "chargeCard");
  });

  it("for a run of a batch job, whether the function throws or fails one item", async () => {
    const many = job({
      name: "many",
      maxAttempts: 1,
      batch: { size: 10, wait: 0 },
      run: (ctx, items: readonly { input: { throws: boolean } }[]) => {
        if (items.some(({ input }) => input.throws)) chargeCard();
        return items.map(() => ctx.fail(readCause()));
      },
    });
    await serve([many]);
    const thrown = await failureOf((await pawl.start("many", { throws: true })).runId);
    expectUserFrames(thrown.stack, "TypeError: no card", "chargeCard");
    const given = await failureOf((await pawl.start("many", { throws: false })).runId);
    expectUserFrames(given.stack, "RangeError: the wallet is empty", "readCause");
  });

  it("for a step of a machine, also one that handle retries", async () => {
    const fails = machine({ name: "fails", steps: { start: () => chargeCard() } });
    const retries = machine({
      name: "retries",
      steps: { start: () => chargeCard() },
      handle: (_error, ctx) => ctx.retry(ctx.state, "1h"),
    });
    await serve([fails, retries]);
    const error = await failureOf((await pawl.start(fails, {})).runId);
    expect(error.step).toBe("start");
    expectUserFrames(error.stack, "TypeError: no card", "chargeCard");
    const { runId } = await pawl.start(retries, {});
    const retried = await until("it was tried", async () => (await pawl.runs.get(runId)).error);
    expect(retried).toMatchObject({ name: "TypeError", step: "start" });
    expectUserFrames(retried?.stack, "TypeError: no card", "chargeCard");
  });

  it("for an error that is given to ctx.stop", async () => {
    const stops = machine({
      name: "stops",
      steps: { start: (ctx) => ctx.stop(new TypeError("no card", { cause: readCause() })) },
    });
    await serve([stops]);
    const error = await failureOf((await pawl.start(stops, {})).runId);
    expectUserFrames(error.stack, "TypeError: no card", "start");
  });

  it("for a step of a workflow and the run that fails by it", async () => {
    let caught: unknown;
    const flow = workflow({
      name: "flow",
      run: async ({ step }) => {
        try {
          await step.run("charge", () => chargeCard(), { retry: { attempts: 1 } });
        } catch (error) {
          caught = error;
          throw error;
        }
      },
    });
    await serve([flow]);
    const { runId } = await pawl.start(flow, null);
    const error = await failureOf(runId);
    expect(error).toMatchObject({ code: "StepFailed", step: "charge" });
    expectUserFrames(error.cause?.stack, "TypeError: no card", "chargeCard");
    const [step] = await pawl.runs.steps(runId);
    expectUserFrames(step?.error?.stack, "TypeError: no card", "chargeCard");
    expect(caught).toBeInstanceOf(StepFailed);
    expect((caught as StepFailed).error).toEqual(step?.error);
  });

  it("for the body of a workflow", async () => {
    const flow = workflow({ name: "throwing", run: async () => chargeCard() });
    await serve([flow]);
    const error = await failureOf((await pawl.start(flow, null)).runId);
    expectUserFrames(error.stack, "TypeError: no card", "chargeCard");
  });

  it("for an invoked run, in the error of its parent", async () => {
    let caught: unknown;
    const charge = job({ name: "invoked", maxAttempts: 1, run: () => chargeCard() });
    const flow = workflow({
      name: "invoking",
      run: ({ step }) =>
        step.invoke("child", charge, null).catch((error: unknown) => {
          caught = error;
          throw error;
        }),
    });
    await serve([charge, flow]);
    const error = await failureOf((await pawl.start(flow, null)).runId);
    expect(error.code).toBe("ChildFailed");
    expectUserFrames(error.cause?.stack, "TypeError: no card", "chargeCard");
    expect(caught).toBeInstanceOf(ChildFailed);
    expectUserFrames((caught as ChildFailed).error?.stack, "TypeError: no card", "chargeCard");
  });
});

describe("a recorded stack", () => {
  it("is at most 8 KiB, together with those of its causes", async () => {
    const limit = Error.stackTraceLimit;
    const deep = (left: number, cause?: unknown): Error =>
      left === 0 ? new Error("deep", { cause }) : deep(left - 1, cause);
    const deepJob = job({
      name: "deep",
      maxAttempts: 1,
      run: () => {
        Error.stackTraceLimit = 1_000;
        try {
          throw deep(500, deep(500));
        } finally {
          Error.stackTraceLimit = limit;
        }
      },
    });
    await serve([deepJob]);
    const error = await failureOf((await pawl.start(deepJob, null)).runId);
    const stacks = [error.stack, error.cause?.stack].map((stack) => JSON.stringify(stack));
    const bytes = stacks.reduce((sum, stack) => sum + Buffer.byteLength(stack), 0);
    expect(bytes).toBeLessThanOrEqual(8192);
    expect(bytes).toBeGreaterThan(7000);
    for (const stack of stacks) expect(stack).toMatch(/:\d+:\d+\)"$/);
  });

  it("is not stored by a worker with recordStacks: false: in runs, steps and causes", async () => {
    const lines: object[] = [];
    const warn = (details: object | string): void => void lines.push(details as object);
    const logger = { debug: () => {}, info: () => {}, warn, error: () => {} };
    const charge = job({ name: "stackless", maxAttempts: 1, run: () => chargeCard() });
    const flow = workflow({
      name: "stackless-flow",
      run: ({ step }) =>
        step.run("charge", () => chargeCard(), { retry: { attempts: 2, backoff: { base: 1 } } }),
    });
    await serve([charge, flow], { recordStacks: false, logger });
    const error = await failureOf((await pawl.start(charge, null)).runId);
    expect(error).toEqual({
      name: "TypeError",
      message: "no card",
      cause: { name: "RangeError", message: "the wallet is empty" },
    });
    const { runId } = await pawl.start(flow, null);
    const [step] = [await failureOf(runId), ...(await pawl.runs.steps(runId))].map((one) =>
      JSON.stringify(one),
    );
    expect(step).toContain("no card");
    expect(step).not.toContain("stack");
    expect(JSON.stringify(await pawl.runs.steps(runId))).not.toContain('"stack"');
    // The log is not a record.
    expect(JSON.stringify(lines)).toContain("stacks.test.");
  });

  it("refuses a recordStacks that is neither true nor false", async () => {
    const charge = job({ name: "never", run: () => null });
    await expect(serve([charge], { recordStacks: "no" as never })).rejects.toThrow(
      'recordStacks must be true or false, not "no"',
    );
  });
});
