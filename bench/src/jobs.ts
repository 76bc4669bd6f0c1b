/**
 * `jobs`: how fast one client starts runs (by `startMany`, and by single `start` calls), and how fast one worker
 * process drains that backlog of no-op jobs. Nothing is claimed while runs are started.
 */

import { connect } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { noOpJob } from "./definitions.js";
import { startInBatches, startOneByOne } from "./enqueue.js";
import { costs, limitFigure, rate, workerCpu } from "./figures.js";
import { measureLimit } from "./limit.js";
import { countUsage } from "./usage.js";
import { drain } from "./worker-process.js";

/** Single starts are for the comparison: a part of the count is enough. */
const singleShare = 0.2;

export const jobs: Bench = {
  defaults: { count: 50_000, quickCount: 5_000, concurrency: 2_000 },
  async measure({ database, count, concurrency, quick, profiling }: BenchRequest): Promise<Figure[]> {
    const limit = await measureLimit(database.observer, quick);
    const single = Math.ceil(count * singleShare);
    const definition = noOpJob();
    const pawl = connect(database.url);
    const enqueueUsed = await countUsage(database);
    const batchSeconds = await profiling.client("start-many", () => startInBatches(pawl, definition, count));
    const enqueueUsage = await enqueueUsed();
    const singleSeconds = await profiling.client("start", () => startOneByOne(pawl, definition, single));
    await pawl.close();

    const expected = count + single;
    const profilePath = profiling.pathFor("worker");
    const drainUsed = await countUsage(database);
    const drained = await profiling.server("drain", database, () =>
      drain({ database, definition: "job", concurrency, expected, profilePath }),
    );
    const drainUsage = await drainUsed();
    profiling.add(profilePath);

    return [
      rate("enqueued_per_s", "enqueued by startMany", count, batchSeconds),
      rate("drained_per_s", "drained", expected, drained.seconds),
      limitFigure(limit),
      rate("started_singly_per_s", "enqueued by concurrent single starts", single, singleSeconds),
      ...costs("enqueue", "run", enqueueUsage, count),
      ...costs("drain", "step", drainUsage, expected),
      workerCpu(drained.workerCpuMs, expected),
    ];
  },
};
