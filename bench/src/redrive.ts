/**
 * `redrive`: how fast a bulk operation reruns failed runs, beside how fast `startMany` starts as many
 * runs in the same database. Nobody claims runs meanwhile: the worker that works off the operation
 * serves another definition.
 */

import { connect, job, NonRetryable, type Pawl, serve } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { input, noOpJob, plain } from "./definitions.js";
import { startInBatches } from "./enqueue.js";
import { costs, rate } from "./figures.js";
import { until } from "./observe.js";
import { countUsage } from "./usage.js";

const name = "bench-failing";

export const redrive: Bench = {
  defaults: { count: 20_000, quickCount: 5_000, concurrency: 2_000 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { database, count, profiling } = request;
    const pawl = connect(database.url);
    try {
      await startFailing(pawl, request);
      const startUsed = await countUsage(database);
      const startSeconds = await startInBatches(pawl, noOpJob(), count, plain);
      const startUsage = await startUsed();
      const used = await countUsage(database);
      const redriven = await profiling.server("redrive", database, () => rerunAll(pawl, request));
      const usage = await used();
      const ratio = (redriven.rate * startSeconds) / count;
      return [
        rate("redriven_per_s", "failed runs redriven", redriven.rate, 1),
        rate("started_per_s", "runs started by startMany", count, startSeconds),
        { key: "ratio", label: "redrive against startMany", value: ratio, unit: "×" },
        { key: "wait_ms", label: "until the first batch is redriven", value: redriven.waitMs, unit: "ms" },
        ...costs("redrive", "run", usage, count),
        ...costs("start", "run", startUsage, count),
      ];
    } finally {
      await pawl.close();
    }
  },
};

/** Starts runs, and lets a worker fail them. */
async function startFailing(
  pawl: Pawl,
  { database, count, concurrency, signal }: BenchRequest,
): Promise<void> {
  const failing = job({
    name,
    run: (_ctx, _input: typeof input): null => {
      throw new NonRetryable("the bench wants it so");
    },
  });
  await startInBatches(pawl, failing, count, plain);
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const worker = serve([failing], { url: database.url, queues: { default: concurrency }, logger: silent });
  const failed = { name, status: "failed" } as const;
  await until(async () => (await pawl.runs.count(failed)) >= count, signal);
  await worker.stop();
}

/**
 * How fast the bulk operation goes, in runs per second, and how long it waits for the first batch: a
 * worker takes it up in its next round. The rate is that of all batches after the first.
 */
async function rerunAll(
  pawl: Pawl,
  { database, count, signal }: BenchRequest,
): Promise<{ rate: number; waitMs: number }> {
  const worker = serve([job({ name: "bench-other", run: () => null })], { url: database.url });
  const batches: { readonly atMs: number; readonly done: number }[] = [];
  worker.on("bulk.worked", ({ done }) => batches.push({ atMs: performance.now(), done }));
  try {
    await worker.ready;
    const begunMs = performance.now();
    const { id } = await pawl.runs.bulk({ where: { name, status: "failed" }, action: "rerun" });
    await until(async () => (await pawl.bulk.get(id)).completedAt !== null, signal);
    const worked = batches.filter(({ done }) => done > 0);
    const [first] = worked;
    const last = worked.at(-1);
    const done = worked.reduce((sum, one) => sum + one.done, 0);
    if (first === undefined || last === undefined || done !== count) {
      throw new Error(`${done} of ${count} runs were redriven`);
    }
    if (first === last) throw new Error(`the runs fit into one batch: raise --count above ${count}`);
    const seconds = (last.atMs - first.atMs) / 1_000;
    return { rate: (count - first.done) / seconds, waitMs: first.atMs - begunMs };
  } finally {
    await worker.stop();
  }
}
