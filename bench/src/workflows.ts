/**
 * `workflows`: how many steps per second one worker process records, over workflows of ten steps;
 * how long a caller waits for a workflow of one step in the same process; and the cost of resuming
 * a workflow with a long journal.
 */

import { performance } from "node:perf_hooks";
import { connect, type Pawl, serve } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import {
  input,
  longWorkflow,
  oneStepWorkflow,
  plain,
  stepsPerWorkflow,
  tenStepWorkflow,
  warmUpWorkflow,
} from "./definitions.js";
import { drain } from "./drain.js";
import { startInBatches } from "./enqueue.js";
import { costs, limitFigure, percentiles, rate, workerCpu } from "./figures.js";
import { claimableRuns, databaseTime, emptyDatabase, until } from "./observe.js";
import { besideLimit } from "./raw-limit.js";
import { percentile } from "./statistics.js";
import { countUsage, type Usage } from "./usage.js";

const latencyRuns = { usual: 1_000, quick: 200, warmUp: 200 };
const concurrency = 10;
const warmUpRuns = 2_000;
/** Slower than runs are ever started: all are there before they fall due. */
const startedPerSecond = 10_000;
/** How long the journals are, and how many runs of each are resumed. */
const journals = [
  { steps: 10, runs: 20 },
  { steps: 100, runs: 20 },
  { steps: 1_000, runs: 10 },
  { steps: 10_000, runs: 5 },
];

export const workflows: Bench = {
  defaults: { count: 1_000, quickCount: 1_000, concurrency: 100 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { observer } = request.database;
    const { limit, result } = await besideLimit(observer, request.quick, () => startAndDrain(request));
    const steps = request.count * stepsPerWorkflow;
    await emptyDatabase(observer);
    const { tookMs, resumed } = await serveHere(request);
    return [
      rate("steps_per_s", "steps recorded", steps, result.drained.seconds),
      {
        key: "runs_per_s",
        label: "workflows of ten steps",
        value: request.count / result.drained.seconds,
        unit: "/s",
      },
      limitFigure(limit),
      ...costs("", "step", result.usage, steps),
      workerCpu(result.drained.workerCpuMs, steps + warmUpRuns * stepsPerWorkflow),
      ...percentiles("result_", "one step, start to result, one process", tookMs),
      ...resumed.map(({ steps: recorded, ms }) => ({
        key: `resume_${recorded}_ms`,
        label: `signal to result with ${recorded} recorded steps`,
        value: ms,
        unit: "ms",
      })),
    ];
  },
};

/** The worker is warm, and all runs fall due at one moment. */
async function startAndDrain({ database, count, concurrency: slots, profiling, signal }: BenchRequest) {
  const { observer } = database;
  const pawl = connect(database.url);
  const definition = tenStepWorkflow();
  const profilePath = profiling.pathFor("worker");
  const order = {
    database,
    definition: "workflow",
    concurrency: slots,
    expected: count,
    profilePath,
    signal,
  } as const;
  let used: () => Promise<Usage>;
  try {
    await startInBatches(pawl, warmUpWorkflow(), warmUpRuns, plain);
    const drained = await profiling.server("drain", database, () =>
      drain(order, definition.name, async ({ deadline }) => {
        await until(async () => (await claimableRuns(observer)) === 0, deadline);
        const due = (await databaseTime(observer)) + 1 + count / startedPerSecond;
        const at = new Date(due * 1_000);
        await startInBatches(pawl, definition, count, () => ({ input, at }));
        if ((await databaseTime(observer)) > due) throw new Error("the runs fell due too early");
        used = await countUsage(database);
        return at.getTime() / 1_000;
      }),
    );
    profiling.add(profilePath);
    return { drained, usage: await used!() };
  } finally {
    await pawl.close();
  }
}

async function serveHere({ database, quick, profiling, signal }: BenchRequest) {
  const definitions = [oneStepWorkflow(), longWorkflow()] as const;
  const worker = serve([...definitions], { url: database.url, queues: { default: concurrency } });
  const pawl = connect(database.url);
  try {
    await worker.ready;
    await oneAfterTheOther(pawl, definitions[0], latencyRuns.warmUp);
    const runs = quick ? latencyRuns.quick : latencyRuns.usual;
    const tookMs = await profiling.server("start to result", database, () =>
      profiling.client("start-to-result", () => oneAfterTheOther(pawl, definitions[0], runs)),
    );
    const resumed: { steps: number; ms: number }[] = [];
    for (const journal of journals) {
      const times: number[] = [];
      for (let run = 0; run < journal.runs; run++)
        times.push(await resume(pawl, definitions[1], journal.steps, signal));
      resumed.push({ steps: journal.steps, ms: percentile(times, 50) });
    }
    return { tookMs, resumed };
  } finally {
    await pawl.close();
    await worker.stop();
  }
}

async function oneAfterTheOther(
  pawl: Pawl,
  definition: ReturnType<typeof oneStepWorkflow>,
  runs: number,
): Promise<number[]> {
  const tookMs: number[] = [];
  for (let run = 0; run < runs; run++) {
    const beginMs = performance.now();
    const { runId } = await pawl.start(definition, input);
    await pawl.result(runId, { timeout: "30s" });
    tookMs.push(performance.now() - beginMs);
  }
  return tookMs;
}

/** From a signal to the result of a workflow that has recorded so many steps. */
async function resume(
  pawl: Pawl,
  definition: ReturnType<typeof longWorkflow>,
  steps: number,
  signal: AbortSignal,
): Promise<number> {
  const { runId } = await pawl.start(definition, { steps });
  await until(async () => (await pawl.runs.get(runId)).phase === "awaiting_signal", signal);
  const beginMs = performance.now();
  await pawl.signal(runId, "go");
  await pawl.result(runId, { timeout: "60s" });
  return performance.now() - beginMs;
}
