/**
 * The shapes of work under load in the fault tests: what people write with Pawl, each so that something lost, done twice or done over a
 * successor shows in its result, in the ledger, or in a table beside the runs (`sideTables`). Served by `worker.ts`, started
 * by `load.ts`, judged by `invariants.ts`. (The line of five steps is `linear` in `definitions.ts`.)
 */

import { child, job, machine, type Transaction, type, workflow } from "pawl";
import { linear } from "./definitions.js";
import { ledgerSleep, pause, tell } from "./effects.js";

const maxCrashes = 1_000;

/** What transactions of steps write to. No constraint: what should not be there twice is to be seen, not prevented. */
export const sideTables = [
  "create table public.transfers (run_id text, step text, at timestamptz default clock_timestamp())",
  "create table public.turns (key text, n bigint, run_id text, at timestamptz default clock_timestamp())",
];

/** The same step again and again. */
export const round = machine({
  name: "round",
  maxCrashes,
  state: type<{ rounds: number; done?: number[] }>(),
  steps: {
    start: async (ctx) => {
      const { rounds, done = [] } = ctx.state;
      await tell(ctx.runId, `start-${done.length}`, ctx.attempt);
      if (done.length === rounds) return ctx.done(done);
      return ctx.next("start", { rounds, done: [...done, done.length] });
    },
  },
});

/** Sleeps for a while between two effects. */
export const nap = workflow({
  name: "nap",
  maxCrashes,
  run: async ({ step, runId }, { ms }: { ms: number }) => {
    await step.run("before", ({ attempt }) => tell(runId, "before", attempt));
    await step.sleep("nap", ms);
    await step.run("after", ({ attempt }) => tell(runId, "after", attempt));
    return ms;
  },
});

/** Gathers so many signals, with timeouts in between, and gives back what came, in order. */
export const gather = machine({
  name: "gather",
  maxCrashes,
  state: type<{ want: number }>(),
  steps: {
    start: async (ctx) => {
      await tell(ctx.runId, "gather", ctx.attempt);
      const got = ctx.awaited.map(({ payload }) => (payload as { n: number }).n);
      if (got.length >= ctx.state.want) return ctx.done(got);
      return ctx.awaitSignal("item", "start", ctx.state, { timeout: 200 });
    },
  },
});

const leaf = job({
  name: "leaf",
  maxCrashes,
  run: async (ctx, { n }: { n: number }) => {
    await tell(ctx.runId, "leaf", ctx.attempt);
    await pause();
    return n * 2;
  },
});

/** Children, and one more generation, then their results. */
export const fan = machine({
  name: "fan",
  maxCrashes,
  state: type<{ width: number; depth: number }>(),
  steps: {
    start: async (ctx) => {
      await tell(ctx.runId, "start", ctx.attempt);
      const { width, depth } = ctx.state;
      const children = Array.from({ length: width }, (_, n) =>
        depth > 0 && n === 0 ? child("fan", { width, depth: depth - 1 }) : child(leaf, { n }),
      );
      return ctx.spawn("end", children, ctx.state);
    },
    end: async (ctx) => {
      await tell(ctx.runId, "end", ctx.attempt);
      return ctx.done(ctx.children.map(({ status, output }) => [status, output] as const));
    },
  },
});

const write = (tx: Transaction, runId: string, step: string): Promise<unknown> =>
  tx.query("insert into public.transfers (run_id, step) values ($1, $2)", [runId, step]);

/** Every kind of step, in parallel and in turn, with transactions among them. */
export const transfer = workflow({
  name: "transfer",
  maxCrashes,
  run: async ({ step, runId }, { n }: { n: number }) => {
    const told = (name: string, value: number): Promise<number> =>
      step.run(name, async ({ attempt }) => {
        await tell(runId, name, attempt);
        await pause();
        return value;
      });
    const debit = step.transaction("debit", async (tx) => {
      await write(tx, runId, "debit");
      return n;
    });
    const [paid, ...parts] = await Promise.all([debit, told("left", n + 1), told("right", n + 2)]);
    await step.sleep("rest", 20);
    const walked = await step.invoke("walk", linear, { path: [] });
    const news = await step.waitForEvent("news", { timeout: 100 });
    await step.transaction("credit", async (tx) => write(tx, runId, "credit").then(() => null));
    return { paid, parts, walked: walked.length, news };
  },
});

/** One at a time for each key: the number that it takes is the one after the last, without any lock of its own. */
export const turn = job({
  name: "turn",
  maxCrashes,
  run: (ctx, { key }: { key: string }) =>
    ctx.transaction(async (tx) => {
      const { rows } = await tx.query<{ n: string }>(
        "select coalesce(max(n), 0) + 1 as n from public.turns where key = $1",
        [key],
      );
      await tell(ctx.runId, "turn", ctx.attempt);
      await tx.query("insert into public.turns (key, n, run_id) values ($1, $2, $3)", [
        key,
        rows[0]!.n,
        ctx.runId,
      ]);
      return Number(rows[0]!.n);
    }),
});

/** Two versions side by side: each run is only ever executed by the code that it was started for. */
const pinnedAs = (version: number) =>
  machine({
    name: "pinned",
    version,
    maxCrashes,
    steps: {
      start: async (ctx) => {
        await tell(ctx.runId, "start", ctx.attempt, version);
        return ctx.next("end", ctx.state);
      },
      end: async (ctx) => {
        await tell(ctx.runId, "end", ctx.attempt, version);
        return ctx.done(version);
      },
    },
  });
export const pinned = [pinnedAs(1), pinnedAs(2)] as const;

export const shapes = [linear, round, nap, gather, leaf, fan, transfer, turn, ...pinned];

/** Keeps the event loop of its worker busy for so long. */
export const blocking = job({
  name: "blocking",
  run: async (ctx, { ms }: { ms: number }) => {
    await tell(ctx.runId, "blocking", ctx.attempt);
    const endMs = performance.now() + ms;
    while (performance.now() < endMs);
    return ctx.attempt;
  },
});

/** Waits for the ledger: the answer comes while the process is stopped, and is the first thing that it sees when it goes on. */
export const asking = job({
  name: "asking",
  maxAttempts: 1_000,
  run: async (ctx, { ms }: { ms: number }) => {
    await tell(ctx.runId, "asking", ctx.attempt);
    await ledgerSleep(ms);
    return ctx.attempt;
  },
});

/** Takes so long, whatever it is told. */
export const stubborn = job({
  name: "stubborn",
  maxAttempts: 1_000,
  run: async (ctx, { ms }: { ms: number }) => {
    await tell(ctx.runId, "stubborn", ctx.attempt);
    await new Promise((resolve) => setTimeout(resolve, ms));
    return ctx.attempt;
  },
});

/** Gathers so many signals; what comes in between changes nothing. */
export const collect = machine({
  name: "collect",
  maxCrashes,
  state: type<{ want: number }>(),
  steps: {
    start: (ctx) => {
      const got = ctx.awaited.map(({ payload }) => (payload as { n: number }).n);
      if (got.length >= ctx.state.want) return ctx.done(got);
      return ctx.awaitSignal("item", "start", ctx.state, { timeout: 500 });
    },
  },
});

export const stresses = [blocking, asking, stubborn, collect];
