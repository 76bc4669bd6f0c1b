import { child, job, machine, type StepContext, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const stored = async (runId: string): Promise<string[]> => {
  const rows = await sql<{ name: string }>("select name from signals where run_id = $1 order by seq", [
    runId,
  ]);
  return rows.map(({ name }) => name);
};

type Context = Pick<StepContext, "awaited" | "inbox" | "timedOut">;
const shown = ({ awaited, inbox, timedOut }: Context) => ({
  awaited: awaited.map(({ payload }) => payload),
  inbox: inbox.map(({ name }) => name),
  timedOut,
});

describe("consumption", () => {
  it("by next is exact: what was shown goes, what came during the step and what did not match stays", async () => {
    const held = gate();
    const seen: unknown[] = [];
    const exact = machine({
      name: "exact",
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state, { match: { ok: 1 } }),
        woken: async (ctx) => {
          seen.push(shown(ctx));
          await held.pass();
          return ctx.next("after", ctx.state);
        },
        after: (ctx) => {
          seen.push(shown(ctx));
          return ctx.awaitSignal("a", "last", ctx.state);
        },
        last: (ctx) => {
          seen.push(shown(ctx));
          return ctx.done();
        },
      },
    });
    const { runId } = await pawl.start(exact, {});
    await pawl.signal(runId, "a", { ok: 1, n: 1 });
    await pawl.signal(runId, "a", { ok: 0, n: 2 });
    await pawl.signal(runId, "b");
    await serve([exact]);
    await until("it is woken", held.entered);
    await pawl.signal(runId, "a", { ok: 1, n: 3 });
    held.open();
    await pawl.result(runId);
    expect(seen).toEqual([
      { awaited: [{ ok: 1, n: 1 }], inbox: ["a", "a", "b"], timedOut: false },
      { awaited: [], inbox: ["a", "b", "a"], timedOut: false },
      {
        awaited: [
          { ok: 0, n: 2 },
          { ok: 1, n: 3 },
        ],
        inbox: ["a", "b", "a"],
        timedOut: false,
      },
    ]);
  });

  it("by a next that gives the claim up, and by spawn, is the same", async () => {
    const held = { next: gate(), spawn: gate() };
    const nothing = job({ name: "nothing", run: () => {} });
    const parting = machine({
      name: "parting",
      state: type<{ by: "next" | "spawn" }>(),
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state),
        woken: async (ctx) => {
          const { by } = ctx.state;
          await held[by].pass();
          return by === "next"
            ? ctx.next("after", ctx.state, { priority: 1 })
            : ctx.spawn("after", [child(nothing)], ctx.state);
        },
        after: (ctx) => ctx.done(shown(ctx)),
      },
    });
    await serve([parting, nothing]);
    for (const by of ["next", "spawn"] as const) {
      const { runId } = await pawl.start(parting, { by });
      await pawl.signal(runId, "b");
      await pawl.signal(runId, "a", 1);
      await until("it is woken", held[by].entered);
      await pawl.signal(runId, "a", 2);
      held[by].open();
      expect(await pawl.result(runId)).toEqual({ awaited: [], inbox: ["b", "a"], timedOut: false });
    }
  });

  it("by what handle decides is the same as by the step", async () => {
    const mended = machine({
      name: "mended",
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state),
        woken: () => {
          throw new Error("thrown");
        },
        after: (ctx) => ctx.done(shown(ctx)),
      },
      handle: (_error, ctx) => ctx.next("after", ctx.state),
    });
    const { runId } = await pawl.start(mended, {});
    for (const name of ["a", "b"]) await pawl.signal(runId, name);
    await serve([mended]);
    expect(await pawl.result(runId)).toEqual({ awaited: [], inbox: ["b"], timedOut: false });
  });

  it("is not done by retry, nor by a step that fails to commit", async () => {
    const failing = machine({
      name: "failing",
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state),
        woken: (ctx) =>
          ctx.attempt === 0
            ? ctx.next("after", ctx.state, { rateLimit: "unknown" })
            : ctx.retry(ctx.state, "1h"),
        after: (ctx) => ctx.done(),
      },
      handle: (_error, ctx) => ctx.retry(ctx.state, 0),
    });
    const { runId } = await pawl.start(failing, {});
    await pawl.signal(runId, "a");
    await serve([failing]);
    await until("it has retried twice", async () => (await pawl.runs.get(runId)).attempt === 2);
    expect(await stored(runId)).toEqual(["a"]);
  });
});

describe("gathering by a renewed await", () => {
  it("consumes nothing, shows all matches each time, and runs the step once per wake", async () => {
    const seen: unknown[] = [];
    const gathering = machine({
      name: "gathering",
      steps: {
        start: (ctx) => {
          seen.push(ctx.awaited.map(({ payload }) => payload));
          return ctx.awaited.length < 4
            ? ctx.awaitSignal("vote", "start", ctx.state)
            : ctx.next("after", ctx.state);
        },
        after: (ctx) => ctx.done(shown(ctx)),
      },
    });
    await serve([gathering]);
    const { runId } = await pawl.start(gathering, {});
    const waitsAfter = (executions: number): Promise<unknown> =>
      until(`it waits after ${executions} executions`, async () => {
        return seen.length === executions && (await pawl.runs.get(runId)).phase === "awaiting_signal";
      });
    for (const n of [1, 2, 3]) {
      await waitsAfter(n);
      await pawl.signal(runId, "other");
      await pawl.signal(runId, "vote", n);
    }
    await waitsAfter(4);
    expect(await stored(runId)).toHaveLength(6);
    await pawl.signal(runId, "vote", 4);
    expect(await pawl.result(runId)).toEqual({
      awaited: [],
      inbox: ["other", "other", "other"],
      timedOut: false,
    });
    expect(seen).toEqual([[], [1], [1, 2], [1, 2, 3], [1, 2, 3, 4]]);
  });

  it("is ended at once by a match that came while the step ran and was not shown", async () => {
    const held = gate();
    const seen: number[] = [];
    const late = machine({
      name: "late",
      steps: {
        start: async (ctx) => {
          seen.push(ctx.awaited.length);
          if (ctx.awaited.length === 1) await held.pass();
          return ctx.awaited.length === 2 ? ctx.done() : ctx.awaitSignal("vote", "start", ctx.state);
        },
      },
    });
    await serve([late], { pollInterval: "1h", maxPollInterval: "1h" });
    const { runId } = await pawl.start(late, {});
    await pawl.signal(runId, "vote");
    await until("one is shown", held.entered);
    await pawl.signal(runId, "vote");
    held.open();
    await pawl.result(runId);
    expect(seen.slice(-2)).toEqual([1, 2]);
  });

  it("on other names is ended by those; what the first await was for stays in the inbox", async () => {
    const seen: unknown[] = [];
    const turning = machine({
      name: "turning",
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "second", ctx.state),
        second: (ctx) => {
          seen.push(shown(ctx));
          return ctx.awaitSignal("b", "third", ctx.state);
        },
        third: (ctx) => {
          seen.push(shown(ctx));
          return ctx.next("fourth", ctx.state);
        },
        fourth: (ctx) => ctx.awaitSignal("a", "fifth", ctx.state),
        fifth: (ctx) => ctx.done(shown(ctx)),
      },
    });
    await serve([turning]);
    const { runId } = await pawl.start(turning, {});
    await pawl.signal(runId, "a", 1);
    await until("it waits for b", async () => {
      return seen.length === 1 && (await pawl.runs.get(runId)).phase === "awaiting_signal";
    });
    await pawl.signal(runId, "a", 2);
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "awaiting_signal", step: "third" });
    await pawl.signal(runId, "b", 3);
    expect(await pawl.result(runId)).toEqual({ awaited: [1, 2], inbox: ["a", "a"], timedOut: false });
    expect(seen).toEqual([
      { awaited: [1], inbox: ["a"], timedOut: false },
      { awaited: [3], inbox: ["a", "a", "b"], timedOut: false },
    ]);
  });

  it("on other names is ended at once by what is there of them, matching or not before", async () => {
    const widening = machine({
      name: "widening",
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "second", ctx.state, { match: { n: 1 } }),
        second: (ctx) => ctx.awaitSignal(["a", "b"], "third", ctx.state),
        third: (ctx) => ctx.done(shown(ctx)),
      },
    });
    const { runId } = await pawl.start(widening, {});
    await pawl.signal(runId, "a", { n: 2 });
    await pawl.signal(runId, "a", { n: 1 });
    await serve([widening], { pollInterval: "1h", maxPollInterval: "1h" });
    expect(await pawl.result(runId)).toMatchObject({ awaited: [{ n: 2 }, { n: 1 }] });
  });
});
