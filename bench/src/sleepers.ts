/**
 * `sleepers`: the cost of suspended workflows for the process that served them, which should be
 * nothing. Compares the heap after a garbage collection, timers and connections before the start
 * and when all workflows sleep.
 */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { connect, serve } from "pawl";
import type pg from "pg";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { plain, sleepingWorkflow } from "./definitions.js";
import { startInBatches } from "./enqueue.js";
import { limitFigure, rate } from "./figures.js";
import { databaseTime, parkedCount, until } from "./observe.js";
import { besideLimit } from "./raw-limit.js";

const warmUpRuns = 1_000;

export const sleepers: Bench = {
  defaults: { count: 100_000, quickCount: 5_000, concurrency: 2_000 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { limit, result } = await besideLimit(request.database.observer, request.quick, () =>
      putToSleep(request),
    );
    const { before, after, seconds } = result;
    return [
      rate("asleep_per_s", "workflows started, one step recorded, asleep", request.count, seconds),
      limitFigure(limit),
      { key: "heap_before_mib", label: "heap before", value: before.heapMib, unit: "MiB" },
      { key: "heap_after_mib", label: "heap when all are asleep", value: after.heapMib, unit: "MiB" },
      {
        key: "heap_bytes_per_sleeper",
        label: "heap per sleeping workflow",
        value: ((after.heapMib - before.heapMib) * 2 ** 20) / request.count,
        unit: "bytes",
      },
      { key: "timers_before", label: "timers before", value: before.timers, unit: "" },
      { key: "timers_after", label: "timers when all are asleep", value: after.timers, unit: "" },
      { key: "connections_before", label: "connections before", value: before.connections, unit: "" },
      {
        key: "connections_after",
        label: "connections when all are asleep",
        value: after.connections,
        unit: "",
      },
    ];
  },
};

async function putToSleep({ database, count, concurrency, signal }: BenchRequest) {
  const { observer } = database;
  const definition = sleepingWorkflow();
  const worker = serve([definition], { url: database.url, queues: { default: concurrency } });
  const pawl = connect(database.url);
  const asleep = async (many: number): Promise<void> =>
    until(async () => (await parkedCount(observer, definition.name)) >= many, signal);
  try {
    await worker.ready;
    await startInBatches(pawl, definition, warmUpRuns, plain);
    await asleep(warmUpRuns);
    const before = await look(observer);
    const since = await databaseTime(observer);
    await startInBatches(pawl, definition, count, plain);
    await asleep(warmUpRuns + count);
    const seconds = (await databaseTime(observer)) - since;
    return { before, after: await look(observer), seconds };
  } finally {
    await pawl.close();
    await worker.stop();
  }
}

async function look(observer: pg.Client) {
  // Wait for polls and calls in flight to end.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const { rows } = await observer.query<{ count: number }>(
    "select count(*)::int as count from pg_stat_activity where datname = current_database() and application_name = 'pawl'",
  );
  return {
    heapMib: process.memoryUsage().heapUsed / 2 ** 20,
    timers: process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length,
    connections: rows[0]!.count,
  };
}
