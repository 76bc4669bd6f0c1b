/**
 * `latency`: how long a caller waits from `start` to the result of a one-step job that is served in
 * the same process, one after the other on an idle server. There are two durable commits in between
 * (the start and the outcome), so the bench also prints the time of one commit on the same server.
 */

import { performance } from "node:perf_hooks";
import { connect, serve } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { input, noOpJob } from "./definitions.js";
import { commitFigure, costs, limitFigure, percentiles } from "./figures.js";
import { besideLimit } from "./raw-limit.js";
import { countUsage } from "./usage.js";

const warmUpRuns = 200;

export const latency: Bench = {
  defaults: { count: 1_000, quickCount: 200, concurrency: 10 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { observer } = request.database;
    const { limit, result } = await besideLimit(observer, request.quick, () => serveAndWait(request));
    return [
      ...percentiles("", "start to result", result.tookMs),
      limitFigure(limit),
      commitFigure(limit),
      ...costs("", "step", result.usage, request.count),
    ];
  },
};

async function serveAndWait({ database, count, concurrency, profiling }: BenchRequest) {
  const definition = noOpJob();
  const worker = serve([definition], { url: database.url, queues: { default: concurrency } });
  const pawl = connect(database.url);
  const oneAfterTheOther = async (runs: number): Promise<number[]> => {
    const tookMs: number[] = [];
    for (let run = 0; run < runs; run++) {
      const beginMs = performance.now();
      const { runId } = await pawl.start(definition, input);
      await pawl.result(runId, { timeout: "30s" });
      tookMs.push(performance.now() - beginMs);
    }
    return tookMs;
  };
  try {
    await worker.ready;
    await oneAfterTheOther(warmUpRuns);
    const used = await countUsage(database);
    const tookMs = await profiling.server("start to result", database, () =>
      profiling.client("start-to-result", () => oneAfterTheOther(count)),
    );
    return { tookMs, usage: await used() };
  } finally {
    await pawl.close();
    await worker.stop();
  }
}
