import { type AnyDefinition, job, machine, signal, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { copyName, copyOf, sideOf } from "../../support/copies.js";
import { testDatabase } from "../../support/database.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const { url } = await testDatabase();

/** For claims that are to lapse soon in the copy. */
const lease = "6s";

/** The definitions of one side, with what they have done. */
function definitions(blocks = async (): Promise<void> => {}) {
  const effects: string[] = [];
  const order = workflow({
    name: "order",
    run: async (ctx) => {
      for (const step of ["pay", "pack", "ship"]) {
        await ctx.step.run(step, () => void effects.push(`${ctx.runId} ${step}`));
      }
      await ctx.step.sleep("rest", 50);
      return ctx.step.run("ask", () => effects.push(`${ctx.runId} ask`) > 0);
    },
  });
  const slow = job({
    name: "slow",
    run: async (ctx) => {
      effects.push(`${ctx.runId} slow ${ctx.attempt}`);
      await blocks();
      return ctx.attempt;
    },
  });
  return { effects, order, slow, all: [order, slow] as AnyDefinition[] };
}

const wait = machine({
  name: "wait",
  signals: { go: signal<{ side: string }>() },
  steps: {
    start: (ctx) => ctx.awaitSignal("go", "end", ctx.state),
    end: (ctx) => ctx.done(ctx.awaited.map(({ payload }) => payload)),
  },
});

const nap = workflow({ name: "nap", run: (ctx) => ctx.step.sleep("night", "8h") });

// Each makes a copy of a database, and waits for leases to pass.
describe("a fork", () => {
  it("finishes on both sides, each by itself: what was recorded before is done by neither again", async () => {
    const original = definitions();
    const copied = definitions();
    const here = sideOf(url);
    await here.serve(original.all, { queues: { default: 3 }, lease });
    const started = await here.pawl.startMany(
      original.order,
      Array.from({ length: 150 }, () => ({ input: null })),
    );
    await until("some steps are done", () => original.effects.length > 20);
    const made = await copyOf(url, { name: copyName() });
    const there = sideOf(made.url);

    const recorded = await there.sql<{ key: string }>(
      "select run_id || ' ' || name as key from steps where completed_at is not null and kind = 'run'",
    );
    await there.serve(copied.all);
    for (const { pawl } of [here, there]) {
      const outputs = await Promise.all(started.map(({ runId }) => pawl.result(runId, { timeout: "100s" })));
      expect(outputs).toEqual(started.map(() => true));
    }
    const all = started.flatMap(({ runId }) =>
      ["pay", "pack", "ship", "ask"].map((step) => `${runId} ${step}`),
    );
    const before = new Set(recorded.map(({ key }) => key));
    expect(before.size).toBeLessThan(all.length);
    expect(copied.effects.toSorted()).toEqual(all.filter((key) => !before.has(key)).toSorted());
    expect(new Set(original.effects)).toEqual(new Set(all));
    expect(made).toMatchObject({ held: false, notes: [] });
    expect(made.pausedMs).toBeGreaterThan(0);
  });

  it("does not keep a worker from its runs: it comes back by itself, and its claims are still its own", async () => {
    const { open, pass, entered } = gate();
    const original = definitions(pass);
    const here = sideOf(url);
    await here.serve(original.all);
    const { runId } = await here.pawl.start(original.slow);
    await until("it is being executed", entered);
    await copyOf(url, { name: copyName() });
    const later = await here.pawl.start(original.order);
    open();
    expect(await here.pawl.result(runId, { timeout: "100s" })).toBe(0);
    expect(await here.pawl.result(later.runId, { timeout: "100s" })).toBe(true);
    expect(original.effects.filter((effect) => effect.startsWith(runId))).toEqual([`${runId} slow 0`]);
  });

  it("has claims that lapse in the copy, while their holder goes on in the original", async () => {
    const { open, pass, entered } = gate();
    const original = definitions(pass);
    const copied = definitions();
    const here = sideOf(url);
    await here.serve(original.all, { lease });
    const { runId } = await here.pawl.start(original.slow);
    await until("it is being executed", entered);
    const there = sideOf((await copyOf(url, { name: copyName() })).url);
    expect(await there.pawl.why(runId)).toMatchObject({ phase: "executing" });
    await there.serve(copied.all);
    expect(await there.pawl.result(runId, { timeout: "100s" })).toBe(1);
    expect(copied.effects).toEqual([`${runId} slow 1`]);
    open();
    expect(await here.pawl.result(runId, { timeout: "100s" })).toEqual(expect.any(Number));
  });

  it("delivers a signal to the side that it is sent to, and to no other", async () => {
    const here = sideOf(url);
    await here.serve([wait]);
    const { runId } = await here.pawl.start(wait, {});
    await until("it waits", async () => (await here.pawl.runs.get(runId)).phase === "awaiting_signal");
    const there = sideOf((await copyOf(url, { name: copyName() })).url);
    await there.serve([wait]);
    await there.pawl.signal(runId, "go", { side: "copy" });
    expect(await there.pawl.result(runId, { timeout: "100s" })).toEqual([{ side: "copy" }]);
    expect(await here.pawl.why(runId)).toMatchObject({ reason: "awaiting_signal", inbox: {} });
    await here.pawl.signal(runId, "go", { side: "original" });
    expect(await here.pawl.result(runId, { timeout: "100s" })).toEqual([{ side: "original" }]);
  });

  it("keeps the due times of runs that sleep, and each side wakes them by its own clock", async () => {
    const here = sideOf(url);
    await here.serve([nap]);
    const { runId } = await here.pawl.start(nap);
    await until("it sleeps", async () => (await here.pawl.why(runId)).reason === "suspended");
    const there = sideOf((await copyOf(url, { name: copyName() })).url);
    const due =
      "select eligible_at, (select due_at from steps where run_id = r.id) from runs r where id = $1";
    expect(await there.sql(due, [runId])).toEqual(await here.sql(due, [runId]));
    await there.sql(
      "create or replace function pawl.clock() returns timestamptz language sql volatile as $$select clock_timestamp() + interval '9 h'$$",
    );
    await there.serve([nap]);
    await there.pawl.result(runId, { timeout: "100s" });
    expect(await here.pawl.why(runId)).toMatchObject({ reason: "suspended" });
    expect((await here.pawl.runs.get(runId)).completedAt).toBeNull();
  });
});
