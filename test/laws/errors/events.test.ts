/** Events of failures carry the thrown value itself. */

import {
  ChildFailed,
  type EventMap,
  type EventName,
  job,
  machine,
  StepFailed,
  type Worker,
  workflow,
} from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

type Failures = Extract<EventName, "step.retried" | "step.failed" | "run.failed">;
type Heard = { [Name in Failures]: readonly [Name, EventMap[Name]] }[Failures];

function listen(worker: Worker): Heard[] {
  const heard: Heard[] = [];
  worker.on("step.retried", (event) => heard.push(["step.retried", event]));
  worker.on("step.failed", (event) => heard.push(["step.failed", event]));
  worker.on("run.failed", (event) => heard.push(["run.failed", event]));
  return heard;
}

/** The events of a run, once it has failed. */
async function eventsOf(heard: Heard[], runId: string): Promise<Heard[]> {
  await expect(pawl.result(runId)).rejects.toThrow();
  const of = (): Heard[] => heard.filter(([, event]) => event.runId === runId);
  await until("it is told", () => of().some(([name]) => name === "run.failed"));
  return of();
}

describe("the events step.retried, step.failed and run.failed carry the very error that was thrown", () => {
  it("by a job, also if it is no Error", async () => {
    const thrown = [Object.assign(new Error("boom"), { code: "E_BOOM" }), { status: 500 }];
    const flaky = job({
      name: "flaky",
      maxAttempts: 2,
      backoff: () => 0,
      run: (ctx) => {
        // oxlint-disable-next-line typescript/only-throw-error
        throw thrown[ctx.attempt];
      },
    });
    const heard = listen(await serve([flaky]));
    const { runId } = await pawl.start(flaky, null);
    const events = await eventsOf(heard, runId);
    expect(events.map(([name, { step, attempt }]) => [name, step, attempt])).toEqual([
      ["step.retried", "run", 0],
      ["step.failed", "run", 1],
      ["run.failed", "run", 1],
    ]);
    for (const [index, error] of [thrown[0], thrown[1], thrown[1]].entries()) {
      expect(events[index]![1].error).toBe(error);
    }
    expect(events[2]![1]).toMatchObject({ name: "flaky", version: 1, code: "Error" });
  });

  it("by a step of a machine, by handle, or given to ctx.stop", async () => {
    const first = new Error("first");
    const last = Object.assign(new Error("last"), { code: "E_LAST" });
    const stubborn = machine({
      name: "stubborn",
      steps: {
        start: (ctx) => {
          throw ctx.attempt === 0 ? first : last;
        },
      },
      handle: (error, ctx) => (ctx.attempt === 0 ? ctx.retry(ctx.state, 0) : ctx.stop(error)),
    });
    const heard = listen(await serve([stubborn]));
    const { runId } = await pawl.start(stubborn, {});
    const events = await eventsOf(heard, runId);
    expect(events.map(([name]) => name)).toEqual(["step.retried", "step.failed", "run.failed"]);
    for (const [index, error] of [first, last, last].entries()) expect(events[index]![1].error).toBe(error);
    expect(events[2]![1]).toMatchObject({ step: "start", attempt: 1, code: "E_LAST" });
  });

  it("by a step of a workflow, and by its body", async () => {
    const thrown = [new Error("first"), new Error("second")];
    let caught: unknown;
    const flow = workflow({
      name: "flow",
      run: ({ step }) =>
        step
          .run(
            "pay",
            (ctx) => {
              // oxlint-disable-next-line typescript/only-throw-error
              throw thrown[ctx.attempt];
            },
            { retry: { attempts: 2, backoff: { base: 1 } } },
          )
          .catch((error: unknown) => {
            caught = error;
            throw error;
          }),
    });
    const heard = listen(await serve([flow]));
    const { runId } = await pawl.start(flow, null);
    const events = await eventsOf(heard, runId);
    expect(events.map(([name, { step }]) => [name, step])).toEqual([
      ["step.retried", "pay"],
      ["step.failed", "pay"],
      ["run.failed", "pay"],
    ]);
    expect(caught).toBeInstanceOf(StepFailed);
    for (const [index, error] of [...thrown, caught].entries()) expect(events[index]![1].error).toBe(error);
  });

  it("by a run that a workflow invoked: the error that the body gets", async () => {
    let caught: unknown;
    const bad = job({ name: "bad", maxAttempts: 1, run: () => Promise.reject(new Error("boom")) });
    const flow = workflow({
      name: "invoking",
      run: ({ step }) =>
        step.invoke("child", bad, null).catch((error: unknown) => {
          caught = error;
          throw error;
        }),
    });
    const heard = listen(await serve([bad, flow]));
    const { runId } = await pawl.start(flow, null);
    const events = await eventsOf(heard, runId);
    expect(events.map(([name]) => name)).toEqual(["step.failed", "run.failed"]);
    expect(caught).toBeInstanceOf(ChildFailed);
    for (const [, { error }] of events) expect(error).toBe(caught);
  });
});

it("a step that returns ctx.retry has failed without an error", async () => {
  const again = machine({
    name: "again",
    steps: { start: (ctx) => (ctx.attempt === 0 ? ctx.retry(ctx.state, 0) : ctx.done()) },
  });
  const heard = listen(await serve([again]));
  await pawl.result((await pawl.start(again, {})).runId);
  expect(heard).toMatchObject([["step.retried", { step: "start", attempt: 0, error: null }]]);
});
