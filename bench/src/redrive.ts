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
  defaults: { count: 20_000, quickCount: 2_000, concurrency: 2_000 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { database, count, profiling } = request;
    const pawl = connect(database.url);
    try {
      await startFailing(pawl, request);
      const startUsed = await countUsage(database);
      const startSeconds = await startInBatches(pawl, noOpJob(), count, plain);
      const startUsage = await startUsed();
      const used = await countUsage(database);
      const seconds = await profiling.server("redrive", database, () => rerunAll(pawl, request));
      const usage = await used();
      return [
        rate("redriven_per_s", "failed runs redriven", count, seconds),
        rate("started_per_s", "runs started by startMany", count, startSeconds),
        { key: "ratio", label: "redrive against startMany", value: startSeconds / seconds, unit: "×" },
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

/** Seconds from the start of the bulk operation to its end, on the database's clock. */
async function rerunAll(pawl: Pawl, { database, count, signal }: BenchRequest): Promise<number> {
  const worker = serve([job({ name: "bench-other", run: () => null })], { url: database.url });
  try {
    await worker.ready;
    const { id } = await pawl.runs.bulk({ where: { name, status: "failed" }, action: "rerun" });
    let operation = await pawl.bulk.get(id);
    await until(async () => (operation = await pawl.bulk.get(id)).completedAt !== null, signal);
    const { startedAt, completedAt, done } = operation;
    if (done !== count) throw new Error(`${done} of ${count} runs were redriven`);
    return (completedAt!.getTime() - startedAt.getTime()) / 1_000;
  } finally {
    await worker.stop();
  }
}
