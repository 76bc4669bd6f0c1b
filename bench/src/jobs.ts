/**
 * `jobs`: how fast one client starts runs (by `startMany`, and by single `start` calls), and how
 * fast one worker process drains that backlog of no-op jobs. No worker claims while the client
 * starts runs.
 */

import { connect } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { noOpJob, plain } from "./definitions.js";
import { drain } from "./drain.js";
import { startInBatches, startOneByOne } from "./enqueue.js";
import { costs, limitFigure, rate, workerCpu } from "./figures.js";
import { besideLimit } from "./raw-limit.js";
import { countUsage } from "./usage.js";

/** Single starts are for the comparison: a part of the count is enough. */
const singleShare = 0.2;

export const jobs: Bench = {
  defaults: { count: 50_000, quickCount: 5_000, concurrency: 2_000 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { observer } = request.database;
    const { limit, result } = await besideLimit(observer, request.quick, () => enqueueAndDrain(request));
    const { count, single, batchSeconds, singleSeconds, drained } = result;
    const all = count + single;
    return [
      rate("enqueued_per_s", "enqueued by startMany", count, batchSeconds),
      rate("drained_per_s", "drained", all, drained.seconds),
      limitFigure(limit),
      rate("started_singly_per_s", "enqueued by concurrent single starts", single, singleSeconds),
      ...costs("enqueue", "run", result.enqueueUsage, count),
      ...costs("drain", "step", result.drainUsage, all),
      workerCpu(drained.workerCpuMs, all),
    ];
  },
};

async function enqueueAndDrain({ database, count, concurrency, profiling, signal }: BenchRequest) {
  const single = Math.ceil(count * singleShare);
  const definition = noOpJob();
  const pawl = connect(database.url);
  const enqueueUsed = await countUsage(database);
  const batchSeconds = await profiling.client("start-many", () =>
    startInBatches(pawl, definition, count, plain),
  );
  const enqueueUsage = await enqueueUsed();
  const singleSeconds = await profiling.client("start", () => startOneByOne(pawl, definition, single));
  await pawl.close();

  const profilePath = profiling.pathFor("worker");
  const drainUsed = await countUsage(database);
  const drained = await profiling.server("drain", database, () =>
    drain(
      { database, definition: "job", concurrency, expected: count + single, profilePath, signal },
      definition.name,
    ),
  );
  const drainUsage = await drainUsed();
  profiling.add(profilePath);
  return { count, single, batchSeconds, singleSeconds, enqueueUsage, drained, drainUsage };
}
