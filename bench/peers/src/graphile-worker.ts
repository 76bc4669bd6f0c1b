/**
 * graphile-worker. Batched is the configuration with which its documentation
 * (worker.graphile.org/docs/performance) reports its own figures: 24 concurrent jobs, 25
 * connections, a local queue of 500, completions batched without delay. Unbatched is the same
 * without the last two; so are latencies and timers, whose batching would only add delay.
 */

import { performance } from "node:perf_hooks";
import { Logger, makeWorkerUtils, run, runMigrations, type Runner, type TaskList } from "graphile-worker";
import { enqueueing, inBatches, input, oneByOne, recorded, Tally, Timers, until } from "./measuring.ts";
import { contend } from "./program.ts";
import { rowCounter } from "./rows.ts";

const concurrentJobs = 24;
const batching = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
/**
 * Timers are found by polling alone. 2 s is the default; 100 ms gives them a chance, and costs
 * little.
 */
const pollInterval = 100;
const logger = new Logger(() => () => {});

function start(connectionString: string, taskList: TaskList, isBatched: boolean): Promise<Runner> {
  return run({
    taskList,
    parsedCronItems: [],
    noHandleSignals: true,
    preset: {
      worker: {
        connectionString,
        concurrentJobs,
        maxPoolSize: concurrentJobs + 1,
        pollInterval,
        logger,
        ...(isBatched ? batching : {}),
      },
    },
  });
}

const jobs = (size: number, identifier: string) =>
  Array.from({ length: size }, () => ({ identifier, payload: input }));

const left = (url: string): Promise<() => Promise<number>> =>
  rowCounter(url, "select count(*) from graphile_worker._private_jobs");

contend({
  async jobs_drained({ databaseUrl, variant, count, warmUp }) {
    const isBatched = variant === "batched";
    await runMigrations({ connectionString: databaseUrl });
    const utils = await makeWorkerUtils({ connectionString: databaseUrl, logger });
    const found = await left(databaseUrl);
    const warm = await start(databaseUrl, { noop: () => {} }, isBatched);
    await utils.addJobs(jobs(warmUp, "noop"));
    await until(async () => (await found()) === 0);
    await warm.stop();

    const tally = new Tally();
    await inBatches(count, (size) => utils.addJobs(jobs(size, "noop")));
    const beginMs = performance.now();
    await start(databaseUrl, { noop: () => tally.end() }, isBatched);
    // A job that is done is deleted.
    return recorded(
      tally,
      count,
      1,
      () => beginMs,
      async () => count - (await found()),
    );
  },

  async enqueued(order) {
    await runMigrations({ connectionString: order.databaseUrl });
    const utils = await makeWorkerUtils({ connectionString: order.databaseUrl, logger });
    return enqueueing(
      order,
      (count) => inBatches(count, (size) => utils.addJobs(jobs(size, "noop"))),
      await left(order.databaseUrl),
    );
  },

  /**
   * It keeps no results; that a job is done and recorded is told by the event `job:complete` in the
   * same process.
   */
  async result_latency(order) {
    const runner = await start(order.databaseUrl, { noop: () => {} }, false);
    const waiting = new Map<string, () => void>();
    const early = new Set<string>();
    runner.events.on("job:complete", ({ job }) => {
      const resolve = waiting.get(job.id);
      if (resolve === undefined) early.add(job.id);
      else resolve();
      waiting.delete(job.id);
    });
    return oneByOne(order, async () => {
      const { id } = await runner.addJob("noop", input);
      if (!early.delete(id)) await new Promise<void>((resolve) => waiting.set(id, resolve));
    });
  },

  async timer_lateness(order) {
    const timers = new Timers(order);
    const fired = (payload: unknown): void => timers.fired((payload as { dueMs: number }).dueMs);
    const runner = await start(order.databaseUrl, { fired }, false);
    return timers.measure((due) => runner.addJob("fired", { dueMs: due.getTime() }, { runAt: due }));
  },
});
