/**
 * `machines`: how many steps per second one worker process commits, over ten-step machines whose
 * every step changes the state. Each step is committed durably before the next one of its run
 * begins.
 */

import { connect } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { plain, stepsPerMachine, tenStepMachine } from "./definitions.js";
import { drain } from "./drain.js";
import { startInBatches } from "./enqueue.js";
import { costs, limitFigure, rate, workerCpu } from "./figures.js";
import { besideLimit } from "./raw-limit.js";
import { countUsage } from "./usage.js";

export const machines: Bench = {
  defaults: { count: 5_000, quickCount: 1_000, concurrency: 2_000 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { observer } = request.database;
    const { limit, result } = await besideLimit(observer, request.quick, () => startAndDrain(request));
    const steps = request.count * stepsPerMachine;
    return [
      rate("steps_per_s", "steps committed", steps, result.drained.seconds),
      limitFigure(limit),
      ...costs("", "step", result.usage, steps),
      workerCpu(result.drained.workerCpuMs, steps),
    ];
  },
};

async function startAndDrain({ database, count, concurrency, profiling, signal }: BenchRequest) {
  const pawl = connect(database.url);
  const definition = tenStepMachine();
  await startInBatches(pawl, definition, count, plain);
  await pawl.close();

  const profilePath = profiling.pathFor("worker");
  const used = await countUsage(database);
  const drained = await profiling.server("drain", database, () =>
    drain(
      { database, definition: "machine", concurrency, expected: count, profilePath, signal },
      definition.name,
    ),
  );
  const usage = await used();
  profiling.add(profilePath);
  return { drained, usage };
}
