import { machine, type StepContext, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { claimOne, register } from "../../support/store.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, store } = database;

const waits = (runId: string): Promise<unknown> =>
  until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
const makeDue = (runId: string): Promise<unknown> =>
  sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);

type Context = Pick<StepContext, "awaited" | "inbox" | "timedOut">;
const shown = ({ awaited, inbox, timedOut }: Context) => ({
  awaited: awaited.map(({ payload }) => payload),
  inbox: inbox.map(({ name }) => name),
  timedOut,
});

/** A worker that claims the run, dies with it, and is found dead. */
async function crash(runId: string, name: string): Promise<void> {
  await register(database, "ghost");
  const { runId: claimed } = await claimOne(database, { workerId: "ghost", names: [name] });
  expect(claimed).toBe(runId);
  await sql("delete from workers where id = 'ghost'");
  await store.reap(100);
  // by this call, or by a worker that was faster
  await until("it is found", async () => (await pawl.runs.get(runId)).attempt === 1);
}

describe("ctx.awaited, ctx.timedOut and ctx.inbox", () => {
  it("show all matches oldest first, and everything in the inbox", async () => {
    const all = machine({
      name: "all",
      steps: {
        start: (ctx) => ctx.awaitSignal(["a", "b"], "woken", ctx.state, { match: { ok: true } }),
        woken: (ctx) => ctx.done(shown(ctx)),
      },
    });
    const { runId } = await pawl.start(all, {});
    for (const [name, n, ok] of [
      ["b", 1, true],
      ["x", 2, true],
      ["a", 3, true],
      ["a", 4, false],
      ["b", 5, true],
    ] as const) {
      await pawl.signal(runId, name, { n, ok });
    }
    await serve([all]);
    expect(await pawl.result(runId)).toEqual({
      awaited: [1, 3, 5].map((n) => ({ n, ok: true })),
      inbox: ["b", "x", "a", "a", "b"],
      timedOut: false,
    });
  });

  it("are empty in a step that no await led to, whatever is in the inbox", async () => {
    const plain = machine({
      name: "plain",
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state),
        woken: (ctx) => ctx.next("after", shown(ctx), { priority: 1 }),
        after: (ctx) => ctx.done([ctx.state, shown(ctx)]),
      },
    });
    const { runId } = await pawl.start(plain, {});
    for (const name of ["b", "a"]) await pawl.signal(runId, name, { name });
    await serve([plain]);
    expect(await pawl.result(runId)).toEqual([
      { awaited: [{ name: "a" }], inbox: ["b", "a"], timedOut: false },
      { awaited: [], inbox: ["b"], timedOut: false },
    ]);
  });

  it("are the same on retry: a match that comes later is in the inbox, and waits for another await", async () => {
    const seen: unknown[] = [];
    const again = machine({
      name: "again",
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state),
        woken: (ctx) => {
          seen.push(shown(ctx));
          return ctx.attempt < 2 ? ctx.retry(ctx.state, ctx.attempt === 0 ? 0 : "1h") : ctx.done();
        },
      },
    });
    await serve([again]);
    const { runId } = await pawl.start(again, {});
    await pawl.signal(runId, "x");
    await pawl.signal(runId, "a", 1);
    await until("it has retried", async () => (await pawl.runs.get(runId)).attempt === 2);
    await pawl.signal(runId, "a", 2);
    await makeDue(runId);
    await pawl.result(runId);
    const first = { awaited: [1], inbox: ["x", "a"], timedOut: false };
    expect(seen).toEqual([first, first, { ...first, inbox: ["x", "a", "a"] }]);
  });

  it("are the same in handle, whatever the step did to its copy", async () => {
    const handled = machine({
      name: "handled",
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state, { timeout: 0 }),
        woken: (ctx) => {
          (ctx.awaited[0]!.payload as { deep: { n: number } }).deep.n = 7;
          (ctx.inbox[0]!.payload as { deep: { n: number } }).deep.n = 8;
          (ctx.awaited as unknown[]).length = 0;
          throw new Error("thrown");
        },
      },
      handle: (_error, ctx) => ctx.done([shown(ctx), ctx.inbox.map(({ payload }) => payload)]),
    });
    const { runId } = await pawl.start(handled, {});
    await pawl.signal(runId, "a", { deep: { n: 1 } });
    await serve([handled]);
    const payload = { deep: { n: 1 } };
    expect(await pawl.result(runId)).toEqual([
      { awaited: [payload], inbox: ["a"], timedOut: false },
      [payload],
    ]);
  });

  it.each(["signal", "timeout"])("are the same after a crash, when a %s ended the wait", async (by) => {
    const name = `fragile-${by}`;
    const fragile = machine({
      name,
      steps: {
        start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state, { timeout: "1h" }),
        woken: (ctx) => ctx.done([ctx.attempt, shown(ctx)]),
      },
    });
    const worker = await serve([fragile]);
    const { runId } = await pawl.start(fragile, {});
    await waits(runId);
    await worker.stop();
    await pawl.signal(runId, "x");
    await (by === "signal" ? pawl.signal(runId, "a", 1) : makeDue(runId));
    await crash(runId, name);
    await pawl.signal(runId, "a", 2);
    await serve([fragile]);
    const awaited = by === "signal" ? [1] : [];
    const inbox = ["x", ...awaited.map(() => "a"), "a"];
    expect(await pawl.result(runId)).toEqual([1, { awaited, inbox, timedOut: by === "timeout" }]);
  });

  it("tell of a signal or of a timeout, never of both, in 300 duels; and no signal is lost", async () => {
    const duel = machine({
      name: "duel",
      state: type<{ ms: number; seen?: unknown[] }>(),
      steps: {
        start: (ctx) => ctx.awaitSignal("pay", "woken", ctx.state, { timeout: ctx.state.ms }),
        woken: (ctx) => {
          const { ms, seen = [] } = ctx.state;
          const now = { ms, seen: [...seen, [ctx.timedOut, ctx.awaited.length]] };
          if (ctx.attempt < 2) return ctx.retry(now, 10);
          return ctx.timedOut ? ctx.awaitSignal("pay", "late", now) : ctx.next("paid", now);
        },
        late: (ctx) => ctx.done([...ctx.state.seen!, ["late", ctx.awaited.length, ctx.timedOut]]),
        paid: (ctx) => ctx.done([...ctx.state.seen!, ["paid", ctx.inbox.length]]),
      },
    });
    await serve([duel], { queues: { default: 20 } });
    const items = Array.from({ length: 300 }, (_, n) => ({ input: { ms: 20 + (n % 60) } }));
    const started = await pawl.startMany(duel, items);
    const ends = await Promise.all(
      started.map(async ({ runId }, n) => {
        await new Promise((resolve) => setTimeout(resolve, 20 + (n % 60) + Math.random() * 40));
        await pawl.signal(runId, "pay", {});
        return JSON.stringify(await pawl.result(runId));
      }),
    );
    const bySignal = JSON.stringify([...Array<unknown>(3).fill([false, 1]), ["paid", 0]]);
    const byTimeout = JSON.stringify([...Array<unknown>(3).fill([true, 0]), ["late", 1, false]]);
    expect([...new Set(ends)].filter((end) => end !== bySignal && end !== byTimeout)).toEqual([]);
  });

  it("are fresh when the claim is kept: what came during a step is in the inbox of the next", async () => {
    const held = [gate(), gate()];
    const seen: unknown[] = [];
    const turns: unknown[] = [];
    const ahead = machine({
      name: "ahead",
      steps: {
        start: async (ctx) => {
          seen.push(shown(ctx));
          await held[0]!.pass();
          return ctx.next("second", ctx.state);
        },
        second: async (ctx) => {
          seen.push(shown(ctx));
          turns.push(...(await sql("select turn::int from runs where id = $1", [ctx.runId])));
          await held[1]!.pass();
          return ctx.next("third", ctx.state);
        },
        third: (ctx) => {
          seen.push(shown(ctx));
          return ctx.awaitSignal("a", "woken", ctx.state);
        },
        woken: (ctx) => ctx.done(shown(ctx)),
      },
    });
    await serve([ahead]);
    const { runId } = await pawl.start(ahead, {});
    await until("the first step runs", held[0]!.entered);
    await pawl.signal(runId, "a", 1);
    held[0]!.open();
    await until("the second step runs", held[1]!.entered);
    await pawl.signal(runId, "b", 2);
    held[1]!.open();
    expect(await pawl.result(runId)).toEqual({ awaited: [1], inbox: ["a", "b"], timedOut: false });
    expect(seen).toEqual([
      { awaited: [], inbox: [], timedOut: false },
      { awaited: [], inbox: ["a"], timedOut: false },
      { awaited: [], inbox: ["a", "b"], timedOut: false },
    ]);
    expect(turns).toEqual([{ turn: 1 }]);
  });
});
