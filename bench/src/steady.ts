/**
 * The cost of a step in a steady state: workers are warm, and SQL inserts as many runs as have
 * ended, so the backlog keeps its length. Rates depend on other load, the CPU time of a step much
 * less. So points of a curve are compared by CPU time, without that of the inserting connection.
 */

import { performance } from "node:perf_hooks";
import type { ServeOptions } from "pawl";
import pg from "pg";
import type { BenchRequest } from "./bench.js";
import type { Servable } from "./definitions.js";
import { fillRunnable, type Runnable } from "./fill.js";
import { countUsage } from "./usage.js";
import { startWorker, type WorkerProcess } from "./worker-process.js";
import type { Progress } from "./worker.js";

const lookMs = 5;
const longestMs = 1_800_000;

export interface Steady {
  readonly definition: Servable;
  readonly concurrency: number;
  readonly workers: number;
  readonly options?: ServeOptions;
  readonly runs: Runnable;
  readonly stepsPerRun: number;
  /** How many runs are in the queue, all the time. They are there already. */
  readonly backlog: number;
  readonly warmUpSteps: number;
}

export interface Cost {
  readonly steps: number;
  readonly seconds: number;
  /** null: cannot be measured here. */
  readonly postgresUs: number | null;
  readonly workerUs: number;
}

/** Server and worker together; the worker alone where the server cannot be measured. */
export const cpuUs = ({ postgresUs, workerUs }: Cost): number => (postgresUs ?? 0) + workerUs;

/** The cost of the steps from now until it is enough. */
export type Slice = (isEnough: (steps: number, seconds: number) => boolean) => Promise<Cost>;

/** Lets workers work, and measures them as often and as long as `measure` says. */
export async function whileSteady<T>(
  { database, signal }: BenchRequest,
  steady: Steady,
  measure: (slice: Slice) => Promise<T>,
): Promise<T> {
  const { definition, concurrency, options = {}, stepsPerRun } = steady;
  const progress: Progress[] = [];
  const total = (): Progress => ({
    ended: progress.reduce((sum, one) => sum + one.ended, 0),
    cpuMs: progress.reduce((sum, one) => sum + one.cpuMs, 0),
  });
  const refiller = new pg.Client({ connectionString: database.url });
  await refiller.connect();
  const { rows } = await refiller.query<{ pid: number }>("select pg_backend_pid() as pid");
  const without = rows[0]!.pid;
  const workers: WorkerProcess[] = [];
  let isOver = false;
  let putIn = 0;
  const refill = async (): Promise<void> => {
    while (!isOver) {
      const missing = Math.floor(total().ended / stepsPerRun) - putIn;
      if (missing > 0) {
        putIn += missing;
        await fillRunnable(refiller, steady.runs, missing);
      }
      await pause(lookMs);
    }
  };
  const slice: Slice = async (isEnough) => {
    const used = await countUsage(database, { without });
    const before = total();
    const beginMs = performance.now();
    const seconds = (): number => (performance.now() - beginMs) / 1_000;
    while (!isEnough(total().ended - before.ended, seconds())) {
      for (const { deadline } of workers) deadline.throwIfAborted();
      await pause(lookMs);
    }
    const after = total();
    const took = seconds();
    const { cpuMs } = await used();
    const steps = after.ended - before.ended;
    return {
      steps,
      seconds: took,
      postgresUs: cpuMs === null ? null : (cpuMs * 1_000) / steps,
      workerUs: ((after.cpuMs - before.cpuMs) * 1_000) / steps,
    };
  };
  let refilling = Promise.resolve();
  try {
    for (let index = 0; index < steady.workers; index++) {
      workers.push(
        await startWorker({
          database,
          definition,
          concurrency,
          options,
          signal,
          longestMs,
          expected: Number.MAX_SAFE_INTEGER,
          profilePath: undefined,
          onProgress: (one) => void (progress[index] = one),
        }),
      );
    }
    refilling = refill();
    await slice((steps) => steps >= steady.warmUpSteps);
    return await measure(slice);
  } finally {
    isOver = true;
    await refilling;
    await refiller.end();
    await Promise.all(workers.map((worker) => worker.stop()));
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
