import { child, job, machine, type, workflow } from "pawl";
import { NotDrained } from "pawl/testing";
import { describe, expect, it } from "vitest";
import { aTest } from "./test.js";

const add = job({ name: "add", run: (_ctx, [one, other]: [number, number]) => one + other });

describe("drain", () => {
  it("resolves at once if there is nothing", async () => {
    const t = await aTest();
    await t.drain();
    await t.serve([add]);
    await t.drain();
  });

  it("resolves when all that was started, and all that this led to, has ended", async () => {
    const t = await aTest();
    const parent = machine({
      name: "parent",
      state: type<{ n: number }>(),
      steps: {
        start: (ctx) =>
          ctx.spawn(
            "sum",
            Array.from({ length: ctx.state.n }, (_, i) => child(add, [i, 1])),
            ctx.state,
          ),
        sum: (ctx) => ctx.done(ctx.children.map(({ output }) => output)),
      },
    });
    const outer = workflow({
      name: "outer",
      run: async ({ step }, n: number) => step.invoke("inner", parent, { n }),
    });
    await t.serve([add, parent, outer]);
    const started = await Promise.all([3, 25].map((n) => t.pawl.start(outer, n)));
    await t.drain();
    const runs = await Promise.all(started.map(({ runId }) => t.pawl.runs.get(runId)));
    expect(runs.map(({ status }) => status)).toEqual(["completed", "completed"]);
    expect(runs[0]!.output).toEqual([1, 2, 3]);
    expect((await t.pawl.runs.list({ status: "running" })).runs).toEqual([]);
  });

  it("resolves when the rest waits for a signal or for time", async () => {
    const t = await aTest();
    const waiting = workflow({
      name: "waiting",
      run: ({ step }) => step.waitForEvent("answer", { timeout: "7d" }),
    });
    await t.serve([waiting, add]);
    const { runId } = await t.pawl.start(waiting);
    await t.pawl.start(add, [1, 2], { delay: "1s" });
    await t.drain();
    expect(await t.pawl.why(runId)).toMatchObject({ reason: "suspended", names: ["answer"] });
    await t.pawl.signal(runId, "answer", 42);
    await t.drain();
    expect((await t.pawl.runs.get(runId)).output).toBe(42);
  });

  it("waits for what was started before anybody served it, and for what only the database knows of", async () => {
    const t = await aTest();
    const { runId } = await t.pawl.start("add", [1, 2]);
    await t.drain();
    expect(await t.pawl.why(runId)).toMatchObject({ reason: "unserved" });
    await t.serve([add]);
    await t.drain();
    expect((await t.pawl.runs.get(runId)).output).toBe(3);
  });

  it("does not wait for runs that nobody serves", async () => {
    const t = await aTest();
    await t.serve([add]);
    const { runId } = await t.pawl.start("elsewhere", {});
    await t.drain();
    await t.advance("1h");
    expect(await t.pawl.why(runId)).toMatchObject({ reason: "unserved" });
  });

  it("waits for functions, and for runs that wait for a slot", async () => {
    const t = await aTest();
    const slow = job({ name: "slow", run: () => new Promise<void>((resolve) => setTimeout(resolve, 60)) });
    await t.serve([slow], { queues: { default: 1 } });
    await t.pawl.startMany(
      slow,
      [1, 2, 3].map(() => ({ input: undefined })),
    );
    await t.drain();
    expect((await t.pawl.runs.list({ status: "completed" })).runs).toHaveLength(3);
  });

  /** Fails once, and then waits in its slot: for so short a time it is not suspended. */
  const flaky = workflow({
    name: "flaky",
    run: ({ step }) =>
      step.run(
        "try",
        ({ attempt }) => {
          if (attempt === 0) throw new Error("not yet");
          return "done";
        },
        { retry: { attempts: 2, backoff: { kind: "fixed", base: 500, jitter: 0 } } },
      ),
  });
  const five = [1, 2, 3, 4, 5].map(() => ({ input: undefined }));

  it("resolves when all slots are taken by what only waits", async () => {
    const t = await aTest();
    await t.serve([flaky], { queues: { default: 2 } });
    await t.pawl.startMany(flaky, five);
    await t.drain();
    // Those in the slots, and perhaps some that were claimed while the slots were taken.
    const executing = (await t.pawl.runs.list({ phase: "executing" })).runs.length;
    expect(executing).toBeGreaterThanOrEqual(2);
    expect(executing).toBeLessThanOrEqual(4);
    await t.advance("2s");
    expect((await t.pawl.runs.list({ status: "completed" })).runs).toHaveLength(5);
  });

  it("resolves when runs that are claimed already wait for such slots", async () => {
    const t = await aTest();
    await t.serve([flaky], { queues: { default: 2 }, prefetch: 2 });
    await t.pawl.startMany(flaky, five);
    await t.drain();
    expect((await t.pawl.runs.list({ phase: "executing" })).runs).toHaveLength(4);
    await t.advance("2s");
    expect((await t.pawl.runs.list({ status: "completed" })).runs).toHaveLength(5);
  });

  it("waits for runs that share a key, one after the other", async () => {
    const t = await aTest();
    const order: number[] = [];
    const keyed = job({ name: "keyed", run: (_ctx, n: number) => void order.push(n) });
    await t.serve([keyed]);
    await t.pawl.startMany(
      keyed,
      Array.from({ length: 30 }, (_, n) => ({ input: n, partitionKey: n % 2 === 0 ? "even" : "odd" })),
    );
    await t.drain();
    for (const rest of [0, 1]) {
      const found = order.filter((n) => n % 2 === rest);
      expect(found).toEqual(Array.from({ length: 15 }, (_, n) => 2 * n + rest));
    }
  });

  it("says why, if something executes for too long", async () => {
    const t = await aTest({ patience: 200 });
    const stuck = machine({
      name: "stuck",
      state: type<{ order: number }>(),
      steps: { start: (ctx) => ctx.next("charge", ctx.state), charge: () => new Promise<never>(() => {}) },
    });
    await t.serve([stuck]);
    const { runId } = await t.pawl.start(stuck, { order: 1 });
    const error = await t.drain().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NotDrained);
    expect((error as NotDrained).runs).toMatchObject([{ runId, reason: "executing" }]);
    expect((error as NotDrained).message).toMatch(
      new RegExp(`no progress for 200 ms.*patience.*run ${runId} is being executed at step "charge"`, "s"),
    );
    await expect(t.advance("1h")).rejects.toThrow(NotDrained);
  });

  describe("of runs that never come to rest gives up, and says which they are and how often they have run:", () => {
    const again = machine({ name: "again", steps: { start: (ctx) => ctx.retry(ctx.state, 0) } });
    const onward = machine({ name: "onward", steps: { start: (ctx) => ctx.next("start", ctx.state) } });
    const endless = workflow({
      name: "endless",
      run: async ({ step }) => {
        for (let n = 0; ; n++) await step.run(`step-${n}`, () => n);
      },
    });
    for (const definition of [again, onward, endless]) {
      it(definition.name, async () => {
        // Only the number of steps ends it.
        const t = await aTest({ patience: "1h", maxSteps: 50 });
        await t.serve([definition, add]);
        const { runId } = await t.pawl.start(definition, {});
        const error = await t.drain().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(NotDrained);
        const { message, runs } = error as NotDrained;
        expect(message).toMatch(
          new RegExp(`do not come to rest.*most of them run ${runId}: \\d{2,}.*testPawl\\(\\{ maxSteps`, "s"),
        );
        expect(runs.map((run) => run.runId)).toEqual([runId]);
      });
    }

    it("runs that each start the next", async () => {
      const t = await aTest({ patience: "1h", maxSteps: 2 });
      const chain = job({
        name: "chain",
        run: async (_ctx, n: number) => void (await t.pawl.start("chain", n + 1)),
      });
      await t.serve([chain]);
      await t.pawl.start(chain, 0);
      await expect(t.drain()).rejects.toThrow(/do not come to rest.*have executed \d{3,} steps/s);
    });
  });

  it("takes as many steps as a run needs, if that is allowed", async () => {
    const t = await aTest({ maxSteps: 2_000 });
    const long = machine({
      name: "long",
      state: type<{ n: number }>(),
      steps: {
        start: (ctx) => (ctx.state.n < 1_500 ? ctx.next("start", { n: ctx.state.n + 1 }) : ctx.done("end")),
      },
    });
    await t.serve([long]);
    const { runId } = await t.pawl.start(long, { n: 0 });
    await t.drain();
    expect((await t.pawl.runs.get(runId)).phase).toBe("done");
    await expect(aTest({ maxSteps: 0 })).rejects.toThrow("maxSteps");
  });

  it("refuses options that it does not know", async () => {
    await expect(aTest({ patients: "1s" } as object)).rejects.toThrow(
      /unknown option "patients".*did you mean "patience"/,
    );
    await expect(aTest({ patience: 5 })).rejects.toThrow("patience must be at least 100 ms, not 5");
    await expect(aTest({ definitions: [add, "add" as never] })).rejects.toThrow(
      "testPawl takes definitions made by job",
    );
    const t = await aTest();
    await expect(t.serve([add], { lease: "1s" } as object)).rejects.toThrow(
      'unknown option "lease" in the options of t.serve',
    );
  });
});
