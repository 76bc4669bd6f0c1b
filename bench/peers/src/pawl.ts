/**
 * Pawl, by its public API. The worker's concurrency for jobs is 2,000, so that two commits of 500
 * can be in flight while as many execute; all else is as it comes.
 */

import { performance } from "node:perf_hooks";
import { type BatchItem, connect, job, serve, signal, workflow } from "pawl";
import {
  enqueueing,
  inBatches,
  input,
  oneByOne,
  recorded,
  stepsPerWorkflow,
  Tally,
  Timers,
  until,
  WakeUps,
} from "./measuring.ts";
import { contend, type Order } from "./program.ts";
import { rowCounter } from "./rows.ts";

type Input = typeof input;

const jobConcurrency = 2_000;

const done = (url: string): Promise<() => Promise<number>> =>
  rowCounter(url, "select count(*) from pawl.runs where status = 'done' and name = 'counted'");

function noOpJob(tally: Tally, name: string) {
  return job({
    name,
    run: (_ctx, _input: Input) => {
      tally.end();
      return null;
    },
  });
}

/** Its code does what that of pg-boss does: it counts the jobs of a batch, two batches at once. */
function noOpBatch(tally: Tally, name: string) {
  return job({
    name,
    batch: { size: 1_000, wait: "100ms" },
    run: (_ctx, batch: readonly BatchItem<Input>[]) => {
      for (const _ of batch) tally.end();
      return null;
    },
  });
}

function tenSteps(tally: Tally, name: string) {
  return workflow({
    name,
    run: async ({ step }, given: Input) => {
      tally.begin();
      let visited = given.visited;
      for (let index = 0; index < stepsPerWorkflow; index++) {
        visited = await step.run(`visit-${index}`, () => visited + 1);
      }
      tally.end();
      return { visited };
    },
  });
}

const items = (size: number) => Array.from({ length: size }, () => ({ input }));

/**
 * Serves a definition once it is warm and all runs that count are there; `measure` waits for them.
 */
async function afterWarmUp<T>(
  { count, warmUp }: Order,
  options: { url: string; queues: { default: number } },
  define: typeof noOpJob | typeof noOpBatch | typeof tenSteps,
  measure: (tally: Tally, found: () => Promise<number>, servedMs: number) => T,
): Promise<Awaited<T>> {
  const pawl = connect(options.url);
  const warmTally = new Tally();
  const warm = define(warmTally, "warm-up");
  const worker = serve([warm], options);
  await pawl.startMany(warm, items(warmUp));
  await until(() => warmTally.count >= warmUp);
  await worker.stop();

  const tally = new Tally();
  const counted = define(tally, "counted");
  await inBatches(count, (size) => pawl.startMany(counted, items(size)));
  const found = await done(options.url);
  const servedMs = performance.now();
  serve([counted], options);
  return await measure(tally, found, servedMs);
}

contend({
  async workflow_steps(order) {
    const options = { url: order.databaseUrl, queues: { default: order.concurrency } };
    return afterWarmUp(order, options, tenSteps, (tally, found) =>
      recorded(tally, order.count, stepsPerWorkflow, () => tally.firstMs, found),
    );
  },

  async jobs_drained(order) {
    const options = { url: order.databaseUrl, queues: { default: jobConcurrency } };
    return afterWarmUp(order, options, noOpJob, (tally, found, servedMs) =>
      recorded(tally, order.count, 1, () => servedMs, found),
    );
  },

  async batches_drained(order) {
    const options = { url: order.databaseUrl, queues: { default: order.concurrency } };
    return afterWarmUp(order, options, noOpBatch, (tally, found, servedMs) =>
      recorded(tally, order.count, 1, () => servedMs, found),
    );
  },

  async enqueued(order) {
    const pawl = connect(order.databaseUrl);
    const counted = noOpJob(new Tally(), "counted");
    return enqueueing(
      order,
      (count) => inBatches(count, (size) => pawl.startMany(counted, items(size))),
      await rowCounter(order.databaseUrl, "select count(*) from pawl.runs"),
    );
  },

  /**
   * As a job, which is what the queues do, and as a workflow of one step, which commits once more.
   */
  async result_latency(order) {
    const visit = (given: Input) => ({ visited: given.visited + 1 });
    const oneStep =
      order.variant === "job"
        ? job({ name: "one-step", run: (_ctx, given: Input) => visit(given) })
        : workflow({
            name: "one-step",
            run: ({ step }, given: Input) => step.run("visit", () => visit(given)),
          });
    const pawl = connect(order.databaseUrl);
    await serve([oneStep], { url: order.databaseUrl, queues: { default: order.concurrency } }).ready;
    return oneByOne(order, async () => {
      const { runId } = await pawl.start(oneStep, input);
      const { visited } = await pawl.result(runId);
      if (visited !== 1) throw new Error("a wrong result");
    });
  },

  async timer_lateness(order) {
    const timers = new Timers(order);
    const sleeper = workflow({
      name: "sleeper",
      run: async ({ step }, { dueMs }: { dueMs: number }) => {
        await step.sleep("until-due", new Date(dueMs));
        timers.fired(dueMs);
      },
    });
    const pawl = connect(order.databaseUrl);
    await serve([sleeper], { url: order.databaseUrl, queues: { default: order.concurrency } }).ready;
    return timers.measure((due) => pawl.start(sleeper, { dueMs: due.getTime() }));
  },

  async signal_wakeup(order) {
    const wakeUps = new WakeUps();
    const waiter = workflow({
      name: "waiter",
      signals: { go: signal<{ visited: number }>() },
      run: async ({ step }) => {
        wakeUps.waiting();
        const { visited } = await step.waitForEvent("go");
        wakeUps.wokenUp();
        return visited;
      },
    });
    const pawl = connect(order.databaseUrl);
    await serve([waiter], { url: order.databaseUrl, queues: { default: order.concurrency } }).ready;
    return wakeUps.measure(
      order,
      async () => (await pawl.start(waiter, {})).runId,
      (runId) => pawl.signal(runId, "go", { visited: 1 }),
    );
  },
});
