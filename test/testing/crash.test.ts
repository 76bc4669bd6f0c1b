import { job, machine, type, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.js";
import { until } from "../support/until.js";
import { aTest, later, newYear, second } from "./test.js";

describe("crash", () => {
  it("loses the step of a workflow that was not committed, and no other", async () => {
    const t = await aTest();
    const door = gate();
    const calls: string[] = [];
    const aborted: unknown[] = [];
    const order = workflow({
      name: "order",
      run: async ({ step }) => {
        await step.run("reserve", () => calls.push("reserve"));
        await step.run("charge", async ({ attempt, signal }) => {
          calls.push(`charge ${attempt}`);
          signal.addEventListener("abort", () => aborted.push((signal.reason as Error).message));
          await door.pass();
          return "charged";
        });
        return calls.length;
      },
    });
    await t.serve([order]);
    const { runId } = await t.pawl.start(order);
    await until("the step is executed", () => door.entered() === 1);
    await t.crash();
    expect(aborted).toEqual(["the worker has died"]);
    expect(await t.pawl.runs.get(runId)).toMatchObject({ status: "running", phase: "runnable", attempt: 1 });
    // What the dead worker still does is dropped.
    door.open();
    await t.drain();
    expect(await t.pawl.result(runId)).toBe(3);
    // A crash uses up no attempt of a step.
    expect(calls).toEqual(["reserve", "charge 0", "charge 0"]);
    expect((await t.pawl.runs.steps(runId)).map(({ name, attempt }) => [name, attempt])).toEqual([
      ["reserve", 0],
      ["charge", 0],
    ]);
  });

  it("counts as an attempt of a job and of a machine, and is put off from the second time on", async () => {
    const t = await aTest({ now: newYear });
    const seen: string[] = [];
    const stuck = (name: string, attempt: number): Promise<void> | void => {
      seen.push(`${name} ${attempt} ${t.now().toISOString()}`);
      return attempt < 2 ? new Promise(() => {}) : undefined;
    };
    const work = job({ name: "work", run: ({ attempt }) => stuck("job", attempt) });
    const walk = machine({
      name: "walk",
      state: type<object>(),
      steps: {
        start: (ctx) => ctx.next("on", ctx.state),
        on: async (ctx) => {
          await stuck("machine", ctx.attempt);
          return ctx.done("there");
        },
      },
    });
    await t.serve([work, walk]);
    const runs = [await t.pawl.start(work), await t.pawl.start(walk, {})];
    await until("both are executed", () => seen.length === 2);
    await t.crash();
    const drained = t.drain();
    await until("both are executed again", () => seen.length === 4);
    await t.crash();
    await drained;
    for (const { runId } of runs) {
      expect(await t.pawl.why(runId)).toMatchObject({ reason: "not_due", attempt: 2, crashes: 2 });
    }
    await t.advance("1m");
    expect(seen.toSorted()).toEqual([
      `job 0 ${later(0)}`,
      `job 1 ${later(0)}`,
      `job 2 ${later(4 * second)}`,
      `machine 0 ${later(0)}`,
      `machine 1 ${later(0)}`,
      `machine 2 ${later(4 * second)}`,
    ]);
  });

  it("fails what crashes too often", async () => {
    const t = await aTest();
    let entered = 0;
    const fatal = workflow({
      name: "fatal",
      maxCrashes: 1,
      run: ({ step }) =>
        step.run("die", () => {
          entered++;
          return new Promise<void>(() => {});
        }),
    });
    await t.serve([fatal]);
    const { runId } = await t.pawl.start(fatal);
    const advanced = t.advance("1m");
    for (const count of [1, 2]) {
      await until("it is executed", () => entered === count);
      await t.crash();
    }
    await advanced;
    expect((await t.pawl.runs.get(runId)).error).toMatchObject({ code: "TooManyCrashes" });
  });

  it("rolls back the transaction that was open", async () => {
    const t = await aTest();
    const door = gate();
    let calls = 0;
    const move = workflow({
      name: "move",
      run: ({ step }) =>
        step.transaction("move", async (tx) => {
          await tx.query("create table moved (n int)");
          if (calls++ === 0) await door.pass();
          return "moved";
        }),
    });
    await t.serve([move]);
    const { runId } = await t.pawl.start(move);
    await until("the transaction is open", () => door.entered() === 1);
    await t.crash();
    await t.drain();
    expect(await t.pawl.result(runId)).toBe("moved");
    expect(calls).toBe(2);
  });

  it("frees partition keys, and does nothing where nothing is executed", async () => {
    const t = await aTest();
    const door = gate();
    let calls = 0;
    const work = job({
      name: "work",
      run: async () => {
        if (calls++ === 0) await door.pass();
      },
    });
    await t.crash();
    await t.serve([work]);
    await t.crash();
    await t.drain();
    const runs = await t.pawl.startMany(work, [
      { input: undefined, partitionKey: "a" },
      { input: undefined, partitionKey: "a" },
    ]);
    await until("the first is executed", () => door.entered() === 1);
    await t.crash();
    await t.drain();
    for (const { runId } of runs) expect((await t.pawl.runs.get(runId)).status).toBe("completed");
    expect(calls).toBe(3);
  });
});
