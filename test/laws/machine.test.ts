import { machine, type Phase, type } from "pawl";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { testDatabase } from "../support/database.js";
import { silent, testEngine } from "../support/engine.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

describe("the promise", () => {
  it("the outcome of every step is committed before the next step begins", async () => {
    const seen: unknown[] = [];
    const look = async (runId: string): Promise<void> => {
      seen.push((await sql("select step, state, attempt from runs where id = $1", [runId]))[0]);
    };
    const walker = machine({
      name: "walker",
      state: type<{ n: number }>(),
      steps: {
        start: async (ctx) => {
          await look(ctx.runId);
          return ctx.next("second", { n: ctx.state.n + 1 });
        },
        second: async (ctx) => {
          await look(ctx.runId);
          return ctx.next("third", { n: ctx.state.n + 1 });
        },
        third: async (ctx) => {
          await look(ctx.runId);
          return ctx.done(ctx.state.n);
        },
      },
    });
    await serve([walker]);
    const { runId } = await pawl.start(walker, { n: 0 });
    expect(await pawl.result(runId)).toBe(2);
    expect(seen).toEqual([
      { step: null, state: null, attempt: 0 },
      { step: "second", state: { n: 1 }, attempt: 0 },
      { step: "third", state: { n: 2 }, attempt: 0 },
    ]);
  });

  it("a timer never fires early by the database clock, and a retry waits for its delay", async () => {
    const waiting = machine({
      name: "waiting",
      steps: {
        start: async (ctx) => {
          const [row] = await sql<{ early: boolean }>(
            "select eligible_at > clock_timestamp() as early from runs where id = $1",
            [ctx.runId],
          );
          if (row!.early) throw new Error("too early");
          return ctx.attempt < 3 ? ctx.retry(ctx.state, 30) : ctx.done(ctx.attempt);
        },
      },
    });
    await serve([waiting]);
    const { runId } = await pawl.start(waiting, {}, { delay: 50 });
    expect(await pawl.result(runId)).toBe(3);
  });
});

describe("machines", () => {
  it("walk from step to step until they are done, and the result is recorded", async () => {
    const order = machine({
      name: "order",
      state: z.object({ order: z.number(), n: z.number().default(0) }),
      steps: {
        start: (ctx) => ctx.next("pack", { ...ctx.state, n: ctx.state.n + 1 }),
        pack: async (ctx) => ctx.next("ship", { ...ctx.state, n: ctx.state.n + 1 }),
        ship: (ctx) => ctx.done({ order: ctx.state.order, steps: ctx.state.n }),
      },
    });
    await serve([order]);
    const { runId } = await pawl.start(order, { order: 7 });
    expect(await pawl.result(runId)).toEqual({ order: 7, steps: 2 });
    const run = await pawl.runs.get(runId);
    expect(run).toMatchObject({
      name: "order",
      version: 1,
      kind: "machine",
      status: "completed",
      phase: "done" satisfies Phase,
      step: "ship",
      input: { order: 7, n: 0 },
      state: { order: 7, n: 2 },
      output: { order: 7, steps: 2 },
      error: null,
    });
    expect(run.completedAt).toBeInstanceOf(Date);
  });

  it("a stored state gets the defaults of fields added later", async () => {
    const v1 = machine({
      name: "grown",
      state: z.object({ a: z.number() }),
      steps: { start: (ctx) => ctx.retry(ctx.state, "1h") },
    });
    const v2 = machine({
      name: "grown",
      state: z.object({ a: z.number(), b: z.string().default("new") }),
      steps: { start: (ctx) => ctx.done(ctx.state) },
    });
    const first = await serve([v1]);
    const { runId } = await pawl.start(v1, { a: 1 });
    await until("it waits", async () => (await pawl.runs.get(runId)).attempt === 1);
    await first.stop();
    await serve([v2]);
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
    expect(await pawl.result(runId)).toEqual({ a: 1, b: "new" });
  });

  it("begins at the step that start names", async () => {
    const midway = machine({
      name: "midway",
      steps: { start: (ctx) => ctx.done("start"), middle: (ctx) => ctx.done("middle") },
    });
    await serve([midway]);
    const { runId } = await pawl.start(midway, {}, { step: "middle" });
    expect(await pawl.result(runId)).toBe("middle");
  });

  it("the first run sees the decoded value exactly as a replay would, key order included", async () => {
    const orders: string[] = [];
    const ordered = machine({
      name: "ordered",
      state: type<{ zz?: number; a: number; at?: Date; 10?: number }>(),
      steps: {
        start: (ctx) => ctx.next("ahead", { zz: 1, a: -0, at: new Date(0), 10: 1 }),
        ahead: (ctx) => {
          orders.push(JSON.stringify(ctx.state));
          return ctx.attempt === 0 ? ctx.retry(ctx.state, 0) : ctx.done(Object.keys(ctx.state));
        },
      },
    });
    await serve([ordered]);
    const { runId } = await pawl.start(ordered, { a: 1 });
    expect(await pawl.result(runId)).toEqual(["10", "a", "at", "zz"]);
    expect(orders).toEqual(Array(2).fill('{"10":1,"a":0,"at":"1970-01-01T00:00:00.000Z","zz":1}'));
  });

  it("yields its slot after 100 steps when others wait", async () => {
    const order: string[] = [];
    const endless = machine({
      name: "endless",
      queue: "slice",
      state: type<{ n: number }>(),
      steps: {
        start: (ctx) => {
          order.push("endless");
          return ctx.state.n >= 250 ? ctx.done() : ctx.next("start", { n: ctx.state.n + 1 });
        },
      },
    });
    const brief = machine({
      name: "brief",
      queue: "slice",
      steps: {
        start: (ctx) => {
          order.push("brief");
          return ctx.done();
        },
      },
    });
    const started = await Promise.all([
      pawl.start(endless, { n: 0 }),
      pawl.start(brief, {}),
      pawl.start(brief, {}),
    ]);
    await serve([endless, brief], { queues: { slice: 1 } });
    for (const { runId } of started) await pawl.result(runId);
    expect(order.indexOf("brief")).toBeGreaterThan(0);
    expect(order.indexOf("brief")).toBeLessThan(order.lastIndexOf("endless"));
  });

  it("gives the step a log that names run and step, and an abort signal", async () => {
    const lines: unknown[] = [];
    const logger = {
      ...silent,
      info: (details: object | string, message?: string) => lines.push([details, message]),
    };
    const logging = machine({
      name: "logging",
      steps: {
        start: (ctx) => {
          ctx.log.info({ extra: 1 }, "hello");
          ctx.log.info("plain");
          return ctx.done(ctx.signal.aborted);
        },
      },
    });
    await serve([logging], { logger });
    const { runId } = await pawl.start(logging, {});
    expect(await pawl.result(runId)).toBe(false);
    const bound = { runId, name: "logging", step: "start", attempt: 0 };
    expect(lines).toEqual([
      [{ ...bound, extra: 1 }, "hello"],
      [bound, "plain"],
    ]);
  });
});
