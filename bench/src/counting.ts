/**
 * `counting`: the cost of a worker's metrics. Measures the CPU time of a no-op job in a worker
 * without a database, with metrics (the default) and without, in a thousand short turns, and its
 * share of the time of a real job. Then worker processes drain such jobs, with and without metrics:
 * that figure matters, but its noise is greater than the cost.
 */

import { connect } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { input, noOpJob, plain } from "./definitions.js";
import { drain, type Drain } from "./drain.js";
import { startInBatches } from "./enqueue.js";
import { rate, share } from "./figures.js";
import { emptyDatabase } from "./observe.js";
import { median } from "./statistics.js";
import { WorkerAlone } from "./worker-alone.js";

const rounds = 8;
const pairs = 1_000;
const quickPairs = 200;
const warmUps = 50;
const jobsAlone = 2_000;

export const counting: Bench = {
  defaults: { count: 30_000, quickCount: 5_000, concurrency: 2_000 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { count, quick } = request;
    const costUs = median(await countAlone(quick ? quickPairs : pairs));
    const counted: Drain[] = [];
    const uncounted: Drain[] = [];
    await drainJobs(request, true); // the first in a database takes longer
    for (let round = 0; round < rounds; round++) {
      const isCountedFirst = round % 2 === 0;
      for (const isCounted of [isCountedFirst, !isCountedFirst]) {
        (isCounted ? counted : uncounted).push(await drainJobs(request, isCounted));
      }
    }
    const seconds = (drains: readonly Drain[]): number => median(drains.map((one) => one.seconds));
    const cpuUs = (drains: readonly Drain[]): number =>
      (median(drains.map((one) => one.workerCpuMs)) * 1_000) / count;
    const cost = (key: string, label: string, value: number): Figure => ({ key, label, value, unit: "µs" });
    return [
      cost("count_us", "to count one job, median of the pairs", costUs),
      share("count_percent", "of the time of a job", costUs * count, seconds(counted) * 1_000_000),
      rate("counted_per_s", "drained with metrics", count, seconds(counted)),
      rate("uncounted_per_s", "drained without", count, seconds(uncounted)),
      share("speed_kept_percent", "metrics keep of the speed", seconds(uncounted), seconds(counted)),
      cost("counted_cpu_us", "worker CPU per job, with", cpuUs(counted)),
      cost("uncounted_cpu_us", "worker CPU per job, without", cpuUs(uncounted)),
    ];
  },
};

async function drainJobs(
  { database, count, concurrency, signal }: BenchRequest,
  metrics: boolean,
): Promise<Drain> {
  await emptyDatabase(database.observer);
  const definition = noOpJob();
  const pawl = connect(database.url);
  await startInBatches(pawl, definition, count, plain);
  await pawl.close();
  const order = {
    database,
    definition: "job",
    concurrency,
    expected: count,
    profilePath: undefined,
    signal,
  } as const;
  return drain({ ...order, options: { metrics } }, definition.name);
}

/** The CPU time that metrics add to one job in a worker without a database, in µs, pair by pair. */
async function countAlone(count: number): Promise<number[]> {
  const alone = (metrics: boolean): WorkerAlone =>
    new WorkerAlone(noOpJob(), JSON.stringify(input), { metrics, queues: { default: 2_000 } });
  const counted = alone(true);
  const uncounted = alone(false);
  const costsUs: number[] = [];
  for (let pair = -warmUps; pair < count; pair++) {
    const [first, second] = pair % 2 === 0 ? [counted, uncounted] : [uncounted, counted];
    const firstUs = await first.work(jobsAlone);
    const secondUs = await second.work(jobsAlone);
    if (pair >= 0) costsUs.push(first === counted ? firstUs - secondUs : secondUs - firstUs);
  }
  await Promise.all([counted.stop(), uncounted.stop()]);
  return costsUs;
}
