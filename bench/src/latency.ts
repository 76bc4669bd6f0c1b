/**
 * `latency`: how long a caller waits from `start` to the result of a one-step job that is served in the same process,
 * one after the other on an idle server. Two durable commits lie in between (the start and the outcome), so the
 * price of one commit on the same server stands beside it.
 */

import { performance } from "node:perf_hooks";
import { connect, serve } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { input, noOpJob } from "./definitions.js";
import { costs, limitFigure } from "./figures.js";
import { measureLimit } from "./limit.js";
import { percentile } from "./statistics.js";
import { countUsage } from "./usage.js";

const warmUpRuns = 200;

export const latency: Bench = {
  defaults: { count: 1_000, quickCount: 200, concurrency: 10 },
  async measure({ database, count, concurrency, quick, profiling }: BenchRequest): Promise<Figure[]> {
    const limit = await measureLimit(database.observer, quick);
    const definition = noOpJob();
    const worker = serve([definition], { url: database.url, queues: { default: concurrency } });
    const pawl = connect(database.url);
    const oneAfterTheOther = async (runs: number): Promise<number[]> => {
      const took: number[] = [];
      for (let run = 0; run < runs; run++) {
        const beginMs = performance.now();
        const { runId } = await pawl.start(definition, input);
        await pawl.result(runId, { timeout: "30s" });
        took.push(performance.now() - beginMs);
      }
      return took;
    };
    try {
      await worker.ready;
      await oneAfterTheOther(warmUpRuns);
      const used = await countUsage(database);
      const took = await profiling.server("start to result", database, () =>
        profiling.client("start-to-result", () => oneAfterTheOther(count)),
      );
      return [
        ...[50, 95, 99].map((percent) => ({
          key: `p${percent}_ms`,
          label: `start to result, p${percent}`,
          value: percentile(took, percent),
          unit: "ms",
        })),
        limitFigure(limit),
        { key: "commit_p50_ms", label: "raw limit: one-row commit, p50", value: limit.commitMs, unit: "ms" },
        ...costs("", "step", await used(), count),
      ];
    } finally {
      await pawl.close();
      await worker.stop();
    }
  },
};
