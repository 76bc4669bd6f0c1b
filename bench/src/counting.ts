/**
 * `counting`: what the metrics of a worker cost. One worker process after the other drains no-op jobs, with metrics (the default) and
 * without, in turns; and what counting a job takes by itself, without anything around it, as a share of the time that a job takes.
 */

import { connect } from "pawl";
import { Events, Metrics } from "pawl/engine";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { noOpJob, plain } from "./definitions.js";
import { drain, type Drain } from "./drain.js";
import { startInBatches } from "./enqueue.js";
import { rate, share } from "./figures.js";
import { emptyDatabase } from "./observe.js";
import { median } from "./statistics.js";

const rounds = 4;
const isolated = { warmUp: 100_000, jobs: 500_000 };

export const counting: Bench = {
  defaults: { count: 30_000, quickCount: 5_000, concurrency: 2_000 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { count } = request;
    const counted: Drain[] = [];
    const uncounted: Drain[] = [];
    for (let round = 0; round < rounds; round++) {
      counted.push(await drainJobs(request, true));
      uncounted.push(await drainJobs(request, false));
    }
    const seconds = (drains: readonly Drain[]): number => median(drains.map((one) => one.seconds));
    const cpuUs = (drains: readonly Drain[]): number =>
      (median(drains.map((one) => one.workerCpuMs)) * 1_000) / count;
    const jobUs = countAlone();
    return [
      rate("counted_per_s", "drained with metrics", count, seconds(counted)),
      rate("uncounted_per_s", "drained without", count, seconds(uncounted)),
      share("speed_kept_percent", "metrics keep of the speed", seconds(uncounted), seconds(counted)),
      { key: "counted_cpu_us", label: "worker CPU per job, with", value: cpuUs(counted), unit: "µs" },
      { key: "uncounted_cpu_us", label: "worker CPU per job, without", value: cpuUs(uncounted), unit: "µs" },
      { key: "count_us", label: "to count one job, by itself", value: jobUs, unit: "µs" },
      share("count_percent", "of the time of a job", jobUs * count, seconds(counted) * 1_000_000),
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

/** The µs of CPU time that it takes to tell the events of one job, and to count them. */
function countAlone(): number {
  const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const events = new Events(silent);
  const metrics = new Metrics(events);
  const [runId, name, version, queue] = ["64", "bench-job", 1, "default"] as const;
  const job = (): void => {
    events.emit("run.claimed", { runId, name, version, queue, attempt: 0 });
    events.emit("step.completed", {
      runId,
      name,
      version,
      step: "run",
      kind: "run",
      attempt: 0,
      durationMs: 0.1,
    });
    events.emit("run.completed", { runId, name, status: "completed", code: null, durationMs: 5 });
    events.emit("run.released", { runId, name, version, queue });
  };
  for (let count = 0; count < isolated.warmUp; count++) job();
  const before = process.cpuUsage();
  for (let count = 0; count < isolated.jobs; count++) job();
  const { user, system } = process.cpuUsage(before);
  metrics.close();
  return (user + system) / isolated.jobs;
}
