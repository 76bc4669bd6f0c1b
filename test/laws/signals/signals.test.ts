import { type AwaitSignal, child, machine, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const waits = (runId: string): Promise<unknown> =>
  until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
const inboxOf = (runId: string): Promise<{ name: string; payload: unknown }[]> =>
  sql("select name, payload from signals where run_id = $1 order by seq", [runId]);

interface Wait {
  readonly names: string | readonly string[];
  readonly match?: object;
}

/** Waits for what its input says and is done with what it got. */
const waiting = machine({
  name: "waiting",
  state: type<Wait>(),
  steps: {
    start: (ctx) => ctx.awaitSignal(ctx.state.names, "woken", ctx.state, { match: ctx.state.match }),
    woken: (ctx) =>
      ctx.done({
        awaited: ctx.awaited.map(({ name, payload }) => ({ name, payload })),
        inbox: ctx.inbox.map(({ name }) => name),
        timedOut: ctx.timedOut,
      }),
  },
});
await serve([waiting]);

describe("a wait", () => {
  it("is parked with its names until a signal of that name arrives, and goes on to the step it named", async () => {
    const { runId } = await pawl.start(waiting, { names: "paid" });
    await waits(runId);
    expect(await pawl.runs.get(runId)).toMatchObject({ step: "woken", attempt: 0, status: "running" });
    expect(await pawl.signal(runId, "paid", { amount: 3 })).toEqual({ delivered: true });
    expect(await pawl.result(runId)).toEqual({
      awaited: [{ name: "paid", payload: { amount: 3 } }],
      inbox: ["paid"],
      timedOut: false,
    });
  });

  it("is ended by any name of its set", async () => {
    for (const name of ["paid", "refused", "withdrawn"]) {
      const { runId } = await pawl.start(waiting, { names: ["paid", "refused", "withdrawn"] });
      await waits(runId);
      await pawl.signal(runId, name);
      expect(await pawl.result(runId)).toMatchObject({ awaited: [{ name, payload: {} }] });
    }
  });

  it("is not ended by another name: that signal stays in the inbox", async () => {
    const { runId } = await pawl.start(waiting, { names: "paid" });
    await waits(runId);
    for (const name of ["Paid", "pai", "paid2", "other"]) await pawl.signal(runId, name);
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "awaiting_signal" });
    await pawl.signal(runId, "paid");
    expect(await pawl.result(runId)).toMatchObject({
      awaited: [{ name: "paid" }],
      inbox: ["Paid", "pai", "paid2", "other", "paid"],
    });
  });

  it.each<[string, object, unknown[], unknown]>([
    ["a member", { id: 7 }, [{ id: 8 }, { ID: 7 }, { id: "7" }, {}], { id: 7, more: true }],
    [
      "a nested member",
      { a: { b: 1 } },
      [{ a: { b: 2 } }, { b: 1 }, { a: 1 }],
      { a: { b: 1.0, c: 2 }, d: 3 },
    ],
    [
      "items of a list, in any order",
      { tags: ["x", "y"] },
      [{ tags: ["x"] }, { tags: "x" }],
      { tags: ["y", "z", "x"] },
    ],
    [
      "objects in a list",
      { lines: [{ sku: 1 }] },
      [{ lines: [{ sku: 2 }] }],
      { lines: [{ sku: 2 }, { sku: 1, n: 4 }] },
    ],
    ["a null member", { at: null }, [{}, { at: 0 }], { at: null }],
    ["no member at all: any object", {}, [1, "text", true, [1]], { any: 1 }],
  ])("matches payloads that contain %s", async (_what, match, others, wanted) => {
    const { runId } = await pawl.start(waiting, { names: "event", match });
    await waits(runId);
    for (const payload of others) await pawl.signal(runId, "event", payload as object);
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "awaiting_signal" });
    await pawl.signal(runId, "event", wanted as object);
    expect(await pawl.result(runId)).toMatchObject({ awaited: [{ name: "event", payload: wanted }] });
  });

  it.each([[0], [-1.5], ["text"], [""], [false], [[]], [[1, [2]]]])(
    "without a match is ended by any payload, such as %j",
    async (payload) => {
      const { runId } = await pawl.start(waiting, { names: "event" });
      await waits(runId);
      await pawl.signal(runId, "event", payload);
      expect(await pawl.result(runId)).toMatchObject({ awaited: [{ name: "event", payload }] });
    },
  );

  it("without a match is ended by the longest list that a payload can be", async () => {
    const { runId } = await pawl.start(waiting, { names: "event" });
    await waits(runId);
    const payload = Array.from({ length: 140_000 }, (_, index) => index);
    await pawl.signal(runId, "event", payload);
    expect(await pawl.result(runId)).toMatchObject({ awaited: [{ payload: { length: 140_000 } }] });
  });

  it("shows the time at which each signal was received, as a Date", async () => {
    const dated = machine({
      name: "dated",
      steps: {
        start: (ctx) => ctx.awaitSignal("event", "woken", ctx.state),
        woken: (ctx) => ctx.done(ctx.awaited.map(({ receivedAt }) => receivedAt.toISOString())),
      },
    });
    await serve([dated]);
    const { runId } = await pawl.start(dated, {});
    // the dedup key keeps the row, whose payload goes
    await pawl.signal(runId, "event", {}, { dedupKey: "k" });
    const times = await pawl.result(runId);
    const [row] = await sql<{ at: Date }>(
      "select date_trunc('milliseconds', inserted_at) as at from signals where run_id = $1",
      [runId],
    );
    expect(times).toEqual([row!.at.toISOString()]);
  });

  it.each<[string, unknown[], RegExp]>([
    ["no names", [[], "start", {}], /1 to 100 names, not a list of 0/],
    ["a bad name", ["no spaces", "start", {}], /no spaces/],
    ["an unknown step", ["event", "nowhere", {}], /there is no step "nowhere"/],
    ["a negative timeout", ["event", "start", {}, { timeout: -1 }], /timeout/],
    ["a match that is no object", ["event", "start", {}, { match: 7 }], /match must be a plain object/],
    ["a match that is null", ["event", "start", {}, { match: null }], /match must be a plain object/],
    ["an unknown option", ["event", "start", {}, { timout: 1 }], /did you mean "timeout"/],
  ])("with %s is an error of the step that returned it", async (what, given, message) => {
    const wrong = machine({
      name: `wrong-${what.replaceAll(" ", "-")}`,
      steps: {
        start: (ctx) => (ctx.awaitSignal as unknown as (...all: unknown[]) => AwaitSignal)(...given),
      },
      handle: (error, ctx) => ctx.done((error as Error).message),
    });
    await serve([wrong]);
    const { runId } = await pawl.start(wrong, {});
    expect(await pawl.result(runId)).toMatch(message);
  });
});

describe("an early signal", () => {
  it("that arrives before the run is claimed ends the wait at once", async () => {
    const { runId } = await pawl.start(waiting, { names: "paid" }, { delay: "1h" });
    await pawl.signal(runId, "paid", { n: 1 });
    await pawl.signal(runId, "paid", { n: 2 });
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "runnable", step: null });
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
    expect(await pawl.result(runId)).toMatchObject({
      awaited: [{ payload: { n: 1 } }, { payload: { n: 2 } }],
    });
  });

  it("that arrives while the step runs ends the wait at once", async () => {
    const held = gate();
    const busy = machine({
      name: "busy",
      steps: {
        start: async (ctx) => {
          await held.pass();
          return ctx.awaitSignal("paid", "woken", ctx.state, { match: { n: 1 } });
        },
        woken: (ctx) => ctx.done(ctx.awaited.map(({ payload }) => payload)),
      },
    });
    await serve([busy], { pollInterval: "1h", maxPollInterval: "1h" });
    const { runId } = await pawl.start(busy, {});
    await until("the step runs", held.entered);
    await pawl.signal(runId, "other", { n: 1 });
    await pawl.signal(runId, "paid", { n: 2 });
    await pawl.signal(runId, "paid", { n: 1 });
    held.open();
    expect(await pawl.result(runId)).toEqual([{ n: 1 }]);
  });

  it("that arrives at the same instant as the await ends the wait", async () => {
    const send: (() => void)[] = [];
    const racing = machine({
      name: "racing",
      queue: "racing",
      state: type<{ n: number }>(),
      steps: {
        start: (ctx) => {
          send[ctx.state.n]!();
          return ctx.awaitSignal("paid", "woken", ctx.state);
        },
        woken: (ctx) => ctx.done(ctx.awaited.length),
      },
    });
    await serve([racing], { queues: { racing: 50 }, pollInterval: "1h", maxPollInterval: "1h" });
    const results = Array.from({ length: 300 }, async (_, n) => {
      const running = new Promise<void>((resolve) => (send[n] = resolve));
      const { runId } = await pawl.start(racing, { n });
      await running;
      await pawl.signal(runId, "paid");
      return pawl.result(runId);
    });
    expect(new Set(await Promise.all(results))).toEqual(new Set([1]));
  });

  it("that nobody awaits stays in the inbox through every step until it is awaited", async () => {
    const patient = machine({
      name: "patient",
      steps: {
        start: (ctx) => ctx.awaitSignal("first", "second", ctx.state),
        second: (ctx) => ctx.next("third", ctx.state),
        third: (ctx) => ctx.retry(ctx.state, 0),
        fourth: (ctx) => ctx.awaitSignal("late", "woken", ctx.state),
        woken: (ctx) => ctx.done(ctx.awaited.map(({ name }) => name)),
      },
    });
    const walking = machine({
      name: "walking",
      steps: {
        start: (ctx) => ctx.awaitSignal("first", "second", ctx.state),
        second: (ctx) => ctx.next("third", ctx.state, { priority: 1 }),
        third: (ctx) =>
          ctx.attempt === 0 ? ctx.retry(ctx.state, 0) : ctx.spawn("fourth", [child(patient, {})], ctx.state),
        fourth: (ctx) => ctx.awaitSignal(["late", "later"], "woken", ctx.state),
        woken: (ctx) => ctx.done(ctx.awaited.map(({ name }) => name)),
      },
    });
    await serve([walking]);
    const { runId } = await pawl.start(walking, {});
    for (const name of ["later", "late", "first"]) await pawl.signal(runId, name);
    await until(
      "it waits for its child",
      async () => (await pawl.runs.get(runId)).phase === "awaiting_children",
    );
    await pawl.signal(runId, "late");
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "awaiting_children" });
    expect((await inboxOf(runId)).map(({ name }) => name)).toEqual(["later", "late", "late"]);
    const [only] = await sql<{ id: string }>("select id from runs where parent_id = $1", [runId]);
    await pawl.runs.cancel(only!.id);
    expect(await pawl.result(runId)).toEqual(["later", "late", "late"]);
  });

  it("neither brings a delayed start nor a retry forward", async () => {
    const eager = machine({
      name: "eager",
      steps: {
        start: (ctx) => ctx.awaitSignal("event", "woken", ctx.state),
        woken: (ctx) => (ctx.attempt === 0 ? ctx.retry(ctx.state, "1h") : ctx.done(ctx.awaited.length)),
      },
    });
    await serve([eager]);
    const delayed = await pawl.start(eager, {}, { delay: "1h" });
    const retried = await pawl.start(eager, {});
    await pawl.signal(retried.runId, "event");
    await until("it retries", async () => (await pawl.runs.get(retried.runId)).attempt === 1);
    for (const { runId } of [delayed, retried]) {
      const { eligibleAt } = await pawl.runs.get(runId);
      await pawl.signal(runId, "event");
      expect(await pawl.runs.get(runId)).toMatchObject({ phase: "runnable", eligibleAt });
    }
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [retried.runId]);
    expect(await pawl.result(retried.runId)).toBe(1);
  });
});
