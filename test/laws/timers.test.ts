import { type Duration, job, machine, type StepContext, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { gate } from "../support/gate.js";
import { aRun } from "../support/store.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, store } = database;

/** Nothing but a known due time, or a nudge, wakes such a worker. */
const rarely = { pollInterval: "1h", maxPollInterval: "1h" } as const;

const waits = (runId: string): Promise<unknown> =>
  until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
const makeDue = (runId: string): Promise<unknown> =>
  sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
/** Whether the run's time has come, by the clock of the database. */
async function isDue(runId: string): Promise<boolean> {
  const [row] = await sql<{ due: boolean }>(
    "select eligible_at <= clock_timestamp() as due from runs where id = $1",
    [runId],
  );
  return row!.due;
}

type Context = Pick<StepContext, "awaited" | "inbox" | "timedOut">;
const shown = ({ awaited, inbox, timedOut }: Context) => ({
  awaited: awaited.map(({ payload }) => payload),
  inbox: inbox.map(({ name }) => name),
  timedOut,
});

/** Waits for "a" as long as its input says. Each test has its own, which no other worker serves. */
const timed = (name: string) =>
  machine({
    name,
    state: type<{ timeout: Duration }>(),
    steps: {
      start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state, { timeout: ctx.state.timeout }),
      woken: (ctx) => ctx.done(shown(ctx)),
    },
  });

describe("a timer", () => {
  it.each<[string, (at: () => Date) => { delay?: number; at?: Date }]>([
    ["delay", () => ({ delay: 60 })],
    ["at", (at) => ({ at: at() })],
  ])(
    "of a start by %s fires when due, not early by the database clock, with polls an hour apart",
    async (by, options) => {
      const early: boolean[] = [];
      const delayed = job({
        name: `delayed-${by}`,
        queue: `delayed-${by}`,
        run: async (ctx) => {
          early.push(!(await isDue(ctx.runId)));
        },
      });
      await serve([delayed], { ...rarely, queues: { [`delayed-${by}`]: 1 } });
      const started = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          pawl.start(
            delayed,
            undefined,
            options(() => new Date(Date.now() + 20 + 17 * n)),
          ),
        ),
      );
      for (const { runId } of started) await pawl.result(runId);
      expect(early).toEqual(Array(10).fill(false));
    },
  );

  it("of a retry fires when due, not early, with polls an hour apart", async () => {
    const early: boolean[] = [];
    const retrying = machine({
      name: "retrying",
      queue: "retrying",
      steps: {
        start: async (ctx) => {
          early.push(!(await isDue(ctx.runId)));
          return ctx.attempt < 4 ? ctx.retry(ctx.state, 25) : ctx.done();
        },
      },
    });
    await serve([retrying], rarely);
    await pawl.result((await pawl.start(retrying, {})).runId);
    expect(early).toEqual(Array(5).fill(false));
  });

  it("of an await fires when due, not early, with polls an hour apart", async () => {
    const early: boolean[] = [];
    const waiting = machine({
      name: "waiting",
      queue: "waiting",
      state: type<{ n: number }>(),
      steps: {
        start: async (ctx) => {
          early.push(!(await isDue(ctx.runId)));
          return ctx.state.n < 4
            ? ctx.awaitSignal("a", "start", { n: ctx.state.n + 1 }, { timeout: 25 })
            : ctx.done(ctx.timedOut);
        },
      },
    });
    await serve([waiting], rarely);
    expect(await pawl.result((await pawl.start(waiting, { n: 0 })).runId)).toBe(true);
    expect(early).toEqual(Array(5).fill(false));
  });

  it("that is nearer than the one a worker sleeps for wakes it first", async () => {
    const order: string[] = [];
    const near = job({
      name: "near",
      queue: "near",
      run: (_ctx, which: string) => {
        order.push(which);
      },
    });
    await serve([near], rarely);
    await pawl.start(near, "far", { delay: "30m" });
    const later = await pawl.start(near, "later", { delay: 300 });
    const sooner = await pawl.start(near, "sooner", { delay: 50 });
    await pawl.result(sooner.runId);
    await pawl.result(later.runId);
    expect(order).toEqual(["sooner", "later"]);
  });

  it("that falls due while all slots are taken fires when one frees", async () => {
    const held = gate();
    const full = machine({
      name: "full",
      queue: "full",
      state: type<{ hold: boolean }>(),
      steps: {
        start: async (ctx) => {
          if (ctx.state.hold) await held.pass();
          return ctx.state.hold ? ctx.done() : ctx.awaitSignal("a", "woken", ctx.state, { timeout: 400 });
        },
        woken: (ctx) => ctx.done(ctx.timedOut),
      },
    });
    await serve([full], { ...rarely, queues: { full: 1 } });
    const waiting = await pawl.start(full, { hold: false });
    await waits(waiting.runId);
    await pawl.start(full, { hold: true });
    await until("the slot is taken", held.entered);
    await until("the other is due", () => isDue(waiting.runId));
    held.open();
    expect(await pawl.result(waiting.runId)).toBe(true);
  });

  it("that was set in another process is found when a worker begins, and later by polling", async () => {
    const foreign = job({ name: "foreign", queue: "foreign", run: () => "fired" });
    const start = async (delayMs: number): Promise<string> => {
      const run = aRun({ name: "foreign", kind: "job", queue: "foreign", input: "null", delayMs });
      const [started] = await store.start([run], { allOrNothing: false, claim: null });
      return started!.runId;
    };
    const before = await start(200);
    const idle = await serve([foreign], rarely);
    expect(await pawl.result(before)).toBe("fired");
    await idle.stop();
    await serve([foreign], { maxPollInterval: "50ms" });
    expect(await pawl.result(await start(100))).toBe("fired");
  });

  it("outlives the worker that set it", async () => {
    const wait = timed("outliving");
    const worker = await serve([wait]);
    const { runId } = await pawl.start(wait, { timeout: 300 });
    await waits(runId);
    await worker.stop();
    await until("it is due", () => isDue(runId));
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "awaiting_signal" });
    await serve([wait], rarely);
    expect(await pawl.result(runId)).toMatchObject({ timedOut: true });
  });
});

describe("a timeout", () => {
  it("is kept as the deadline of the wait; without one there is none", async () => {
    const wait = timed("limited");
    const endless = machine({
      name: "endless",
      steps: { start: (ctx) => ctx.awaitSignal("a", "start", ctx.state) },
    });
    await serve([wait, endless]);
    const limited = (await pawl.start(wait, { timeout: "1h" })).runId;
    const unlimited = (await pawl.start(endless, {})).runId;
    await waits(limited);
    await waits(unlimited);
    const [row] = await sql<{ left: number }>(
      "select extract(epoch from eligible_at - (awaits ->> 'since')::timestamptz)::float as left from runs where id = $1",
      [limited],
    );
    expect(row!.left).toBeCloseTo(3_600, 1);
    expect((await pawl.runs.get(limited)).eligibleAt).toBeInstanceOf(Date);
    expect((await pawl.runs.get(unlimited)).eligibleAt).toBeNull();
    await pawl.runs.cancel(limited);
    await pawl.runs.cancel(unlimited);
  });

  it("is a wake and not a failure: handle is not called, the attempt is 0, the named step runs", async () => {
    const calm = machine({
      name: "calm",
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state, { timeout: 10 }),
        woken: (ctx) => ctx.done([ctx.step, ctx.attempt, shown(ctx)]),
      },
      handle: (_error, ctx) => ctx.done("handled"),
    });
    await serve([calm]);
    const { runId } = await pawl.start(calm, {});
    await pawl.signal(runId, "b").catch(() => {});
    expect(await pawl.result(runId)).toMatchObject(["woken", 0, { awaited: [], timedOut: true }]);
  });

  it("of 0 passes at once, unless a match is there already", async () => {
    const wait = timed("hasty");
    await serve([wait]);
    const alone = (await pawl.start(wait, { timeout: 0 })).runId;
    expect(await pawl.result(alone)).toEqual({ awaited: [], inbox: [], timedOut: true });
    const met = (await pawl.start(wait, { timeout: 0 }, { delay: "1h" })).runId;
    await pawl.signal(met, "a", 1);
    await makeDue(met);
    expect(await pawl.result(met)).toEqual({ awaited: [1], inbox: ["a"], timedOut: false });
  });

  it("loses against a match that comes after the deadline but before the wait is resolved", async () => {
    const wait = timed("losing");
    const worker = await serve([wait], { queues: { default: 1 } });
    const { runId } = await pawl.start(wait, { timeout: "1h" });
    await waits(runId);
    await worker.stop();
    await makeDue(runId);
    await pawl.signal(runId, "b");
    await pawl.signal(runId, "a", 1);
    await serve([wait]);
    expect(await pawl.result(runId)).toEqual({ awaited: [1], inbox: ["b", "a"], timedOut: false });
  });

  it("of a renewed await shows what was gathered, and next consumes that", async () => {
    const seen: unknown[] = [];
    const gathering = machine({
      name: "gathering",
      steps: {
        start: (ctx) => {
          seen.push(shown(ctx));
          return ctx.timedOut
            ? ctx.next("after", ctx.state)
            : ctx.awaitSignal("a", "start", ctx.state, { timeout: "1h" });
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
    for (const n of [1, 2]) {
      await waitsAfter(n);
      await pawl.signal(runId, "a", n);
    }
    await waitsAfter(3);
    await makeDue(runId);
    expect(await pawl.result(runId)).toEqual({ awaited: [], inbox: [], timedOut: false });
    expect(seen.at(-1)).toEqual({ awaited: [1, 2], inbox: ["a", "a"], timedOut: true });
    expect(seen).toHaveLength(4);
  });

  it("stays one on retry and in handle, without what comes later, and ends with the next step", async () => {
    const seen: unknown[] = [];
    const lasting = machine({
      name: "lasting",
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state, { timeout: 0 }),
        woken: (ctx) => {
          seen.push(shown(ctx));
          if (ctx.attempt === 0) return ctx.retry(ctx.state, "1h");
          throw new Error("thrown");
        },
        after: (ctx) => ctx.done(shown(ctx)),
      },
      handle: (_error, ctx) => {
        seen.push(shown(ctx));
        return ctx.next("after", ctx.state);
      },
    });
    await serve([lasting]);
    const { runId } = await pawl.start(lasting, {});
    await until("it retries", async () => (await pawl.runs.get(runId)).attempt === 1);
    await pawl.signal(runId, "a", 1);
    await makeDue(runId);
    expect(await pawl.result(runId)).toEqual({ awaited: [], inbox: ["a"], timedOut: false });
    const later = { awaited: [], inbox: ["a"], timedOut: true };
    expect(seen).toEqual([{ awaited: [], inbox: [], timedOut: true }, later, later]);
  });
});
