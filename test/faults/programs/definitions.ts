/** What the worker processes of the fault tests serve. Every step tells the ledger before it does anything. */

import { job, machine, type Next, type StepContext, type, workflow } from "pawl";
import { pause, tell } from "./effects.js";

const order = ["start", "second", "third", "fourth", "last"] as const;

/** Each step adds its name to the state: what was committed twice, or over a successor, shows in the path. */
export const linear = machine({
  name: "linear",
  maxCrashes: 1_000,
  state: type<{ path: string[] }>(),
  steps: {
    start: (ctx) => walk(ctx),
    second: (ctx) => walk(ctx),
    third: (ctx) => walk(ctx),
    fourth: (ctx) => walk(ctx),
    last: async (ctx) => {
      await tell(ctx.runId, ctx.step, ctx.attempt);
      return ctx.done([...ctx.state.path, ctx.step]);
    },
  },
});

type Walk = StepContext<(typeof order)[number], { path: string[] }>;

async function walk(ctx: Walk): Promise<Next> {
  await tell(ctx.runId, ctx.step, ctx.attempt);
  await pause();
  return ctx.next(order[order.indexOf(ctx.step) + 1]!, { path: [...ctx.state.path, ctx.step] });
}

/** Kills its own worker in the first attempts. */
export const suicidal = machine({
  name: "suicidal",
  state: type<{ times: number }>(),
  steps: {
    start: (ctx) => ctx.next("deadly", ctx.state),
    deadly: async (ctx) => {
      await tell(ctx.runId, ctx.step, ctx.attempt);
      if (ctx.attempt < ctx.state.times) process.kill(process.pid, "SIGKILL");
      return ctx.done(ctx.attempt);
    },
  },
  handle: (_error, ctx) => ctx.stop("handle must not see a crash"),
});

/** Takes long enough to be overtaken; its outcome names the process that it came from. */
export const slow = machine({
  name: "slow",
  steps: {
    start: async (ctx) => {
      await tell(ctx.runId, ctx.step, ctx.attempt);
      await new Promise((resolve) => setTimeout(resolve, 500));
      return ctx.done({ pid: process.pid, attempt: ctx.attempt });
    },
  },
});

/** Gives up after two crashes. */
export const fragile = machine({
  name: "fragile",
  maxCrashes: 1,
  steps: {
    start: async (ctx) => {
      await tell(ctx.runId, ctx.step, ctx.attempt);
      process.kill(process.pid, "SIGKILL");
      return ctx.done();
    },
  },
});

/** A job that leaves the process in its own ways. */
export const leaving = job({
  name: "leaving",
  input: type<{ how: "exit" | "rejection" }>(),
  run: async (ctx, input) => {
    await tell(ctx.runId, "run", ctx.attempt);
    if (ctx.attempt > 0) return ctx.attempt;
    if (input.how === "exit") process.exit(3);
    void Promise.reject(new Error("nobody catches this"));
    await new Promise(() => {});
    return null;
  },
});

/** Every kind of step; each tells the ledger, and its result is what it was at first. */
export const journey = workflow({
  name: "journey",
  maxCrashes: 1_000,
  run: async ({ step, runId }, input: { n: number }) => {
    const told = (name: string, value: number): Promise<number> =>
      step.run(name, async ({ attempt }) => {
        await tell(runId, name, attempt);
        await pause();
        return value;
      });
    const first = await told("first", input.n);
    const parts = await Promise.all([0, 1, 2].map((index) => told(`part-${index}`, first + index)));
    await step.sleep("nap", 20);
    const path = await step.invoke("walk", linear, { path: [] });
    const timeout = await step.waitForEvent("never", { timeout: 10 });
    const flaky = await step.run(
      "flaky",
      async ({ attempt }) => {
        await tell(runId, "flaky", attempt);
        if (attempt === 0) throw new Error("the first time");
        return attempt;
      },
      { retry: { backoff: { kind: "fixed", base: 10 } } },
    );
    return { parts, steps: path.length, timeout, flaky, last: await told("last", first * 2) };
  },
});
