import { type AnyDefinition, InvalidOption, job, machine, type, workflow, type WorkflowContext } from "pawl";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const { pawl, serve } = testEngine(await testDatabase());

const started: string[] = [];
afterEach(async () => {
  for (const runId of started.splice(0)) await pawl.runs.cancel(runId).catch(() => {});
});

/** A run of this body that has come to its first wait. */
async function suspended(body: (ctx: WorkflowContext) => Promise<unknown>, name: string): Promise<string> {
  const definition = workflow({ name, run: body });
  const worker = await serve([definition]);
  const { runId } = await pawl.start(definition, null);
  started.push(runId);
  await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
  await worker.stop();
  return runId;
}

const recordTwo = async (ctx: WorkflowContext): Promise<unknown> => {
  await ctx.step.run("one", () => 1);
  await ctx.step.run("two", () => 2);
  await ctx.step.waitForEvent("go");
  return null;
};

const never = (): never => {
  throw new Error("a function of a step was called");
};

describe("check", () => {
  it("finds nothing against the same code, and calls no function of a step", async () => {
    await suspended(recordTwo, "same");
    const seen: unknown[] = [];
    const again = workflow({
      name: "same",
      run: async (ctx) => {
        seen.push(await ctx.step.run("one", never));
        seen.push(await ctx.step.run("two", never));
        await ctx.step.waitForEvent("go");
        seen.push("beyond the wait");
        return null;
      },
    });
    expect(await pawl.check([again])).toEqual({ runs: 1, broken: [] });
    expect(seen).toEqual([1, 2]);
  });

  it("lets steps be added that no run has passed, in parallel branches too", async () => {
    await suspended(async (ctx) => {
      const [left] = await Promise.all([ctx.step.run("left", () => 1), ctx.step.waitForEvent("right")]);
      return left;
    }, "grown");
    const grown = workflow({
      name: "grown",
      run: async (ctx) => {
        const left = ctx.step.run("left", never).then(() => ctx.step.run("more-left", never));
        await Promise.all([left, ctx.step.waitForEvent("right")]);
        return ctx.step.run("last", never);
      },
    });
    expect(await pawl.check([grown])).toEqual({ runs: 1, broken: [] });
  });

  it.each<[string, string, (ctx: WorkflowContext) => Promise<unknown>, RegExp]>([
    [
      "changed_step",
      "a recorded step is called as something else",
      async (ctx) => {
        await ctx.step.sleep("one", "1s");
        return null;
      },
      /step "one" is recorded as step\.run, but the body calls it as step\.sleep/,
    ],
    [
      "missing_step",
      "a recorded step is not called any more",
      async (ctx) => {
        await ctx.step.run("one", never);
        await ctx.step.run("renamed", never);
        await ctx.step.waitForEvent("go");
        return null;
      },
      /it has recorded "go", "two", which the body no longer calls/,
    ],
    [
      "throws",
      "the body throws",
      async (ctx) => {
        await ctx.step.run("one", never);
        throw new TypeError("no such member");
      },
      /no such member/,
    ],
  ])("lists a run as %s if %s", async (reason, _why, run, text) => {
    const name = `broken-${reason.replace("_", "-")}`;
    const runId = await suspended(recordTwo, name);
    const { runs, broken } = await pawl.check([workflow({ name, run })]);
    expect(runs).toBe(1);
    expect(broken).toEqual([{ runId, name, version: 1, reason, text: expect.stringMatching(text) }]);
  });

  it("lists runs whose version is not given, whose input or state no longer parses, whose step is gone", async () => {
    const base = { name: "changing" };
    const { runId: ofOne } = await pawl.start(
      job({ ...base, run: (_ctx, _input: { n: string }) => null }),
      { n: "1" },
      { delay: "1h" },
    );
    const two = machine({
      ...base,
      version: 2,
      state: type<{ n: string }>(),
      steps: { start: (ctx) => ctx.done() },
    });
    const { runId: ofTwo } = await pawl.start(two, { n: "1" }, { delay: "1h" });
    const three = workflow({ ...base, version: 3, run: async (_ctx, _input: { n: string }) => null });
    const { runId: ofThree } = await pawl.start(three, { n: "1" }, { delay: "1h" });
    started.push(ofOne, ofTwo, ofThree);
    const n = z.object({ n: z.number() });
    const numbered: AnyDefinition[] = [
      machine({ ...base, version: 2, state: n, initial: "begin", steps: { begin: (ctx) => ctx.done() } }),
      workflow({ ...base, version: 3, input: n, run: async () => null }),
    ];
    const { runs, broken } = await pawl.check(numbered);
    expect(runs).toBe(3);
    const reasonOf = (runId: string): string | undefined => broken.find((one) => one.runId === runId)?.reason;
    expect([ofOne, ofTwo, ofThree].map(reasonOf)).toEqual([
      "missing_definition",
      "invalid_input",
      "invalid_input",
    ]);

    const renamed = machine({ ...base, version: 2, initial: "begin", steps: { begin: (ctx) => ctx.done() } });
    const { runId: atStart } = await pawl.start(two, { n: "1" }, { delay: "1h", step: "start" });
    started.push(atStart);
    const { broken: later } = await pawl.check([renamed]);
    expect(later.filter((one) => one.runId === atStart)).toMatchObject([
      { reason: "missing_step", text: 'it is at step "start"; the steps are begin' },
    ]);
  });

  it("finds a changed step although the body would catch the error", async () => {
    const name = "caught-change";
    const runId = await suspended(recordTwo, name);
    const catching = workflow({
      name,
      run: async (ctx) => {
        await ctx.step.sleep("one", "1s").catch(() => {});
        await ctx.step.run("two", never);
        return ctx.step.waitForEvent("go");
      },
    });
    expect(await pawl.check([catching])).toMatchObject({ broken: [{ runId, reason: "changed_step" }] });
  });

  it("follows a branch that waits for something between its steps", async () => {
    const body = (fn: () => number) => async (ctx: WorkflowContext) => {
      const branch = async (): Promise<unknown> => {
        await ctx.step.run("one", fn);
        await new Promise((resolve) => setTimeout(resolve, 50));
        await ctx.step.run("two", fn);
        return ctx.step.waitForEvent("go");
      };
      return Promise.all([branch(), ctx.step.waitForEvent("other")]);
    };
    // The wait of the one branch alone would suspend the run while the other is between two steps.
    const name = "branches";
    const definition = workflow({
      name,
      run: async (ctx) => {
        await ctx.step.run("one", () => 1);
        await ctx.step.run("two", () => 2);
        return Promise.all([ctx.step.waitForEvent("go"), ctx.step.waitForEvent("other")]);
      },
    });
    const worker = await serve([definition]);
    const { runId } = await pawl.start(definition, null);
    started.push(runId);
    await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
    await worker.stop();
    expect(await pawl.check([workflow({ name, run: body(never) })])).toEqual({ runs: 1, broken: [] });
  });

  it("looks at open runs only, all of them, and writes nothing", async () => {
    const many = job({ name: "many", run: () => null });
    const ids = await pawl.startMany(
      many,
      Array.from({ length: 250 }, () => ({ input: null, delay: "1h" as const })),
    );
    started.push(...ids.map(({ runId }) => runId));
    const before = await pawl.runs.get(ids[0]!.runId);
    expect(await pawl.check([many])).toEqual({ runs: 250, broken: [] });
    expect(await pawl.runs.get(ids[0]!.runId)).toEqual(before);
    await pawl.runs.cancel(ids[0]!.runId);
    expect(await pawl.check([many])).toMatchObject({ runs: 249 });
  });

  it("refuses what is no list of definitions", async () => {
    await expect(pawl.check([])).rejects.toThrow(InvalidOption);
    await expect(pawl.check(["many"] as never)).rejects.toThrow(/check takes definitions made by/);
  });
});
