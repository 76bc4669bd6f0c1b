/**
 * `machines`: how many steps per second one worker process commits, over ten-step machines whose every step changes
 * the state. Each step is committed durably before the next one of its run begins.
 */

import { connect } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { stepsPerMachine, tenStepMachine } from "./definitions.js";
import { startInBatches } from "./enqueue.js";
import { costs, limitFigure, rate, workerCpu } from "./figures.js";
import { measureLimit } from "./limit.js";
import { countUsage } from "./usage.js";
import { drain } from "./worker-process.js";

export const machines: Bench = {
  defaults: { count: 5_000, quickCount: 1_000, concurrency: 2_000 },
  async measure({ database, count, concurrency, quick, profiling }: BenchRequest): Promise<Figure[]> {
    const limit = await measureLimit(database.observer, quick);
    const pawl = connect(database.url);
    await startInBatches(pawl, tenStepMachine(), count);
    await pawl.close();

    const profilePath = profiling.pathFor("worker");
    const used = await countUsage(database);
    const drained = await profiling.server("drain", database, () =>
      drain({ database, definition: "machine", concurrency, expected: count, profilePath }),
    );
    const usage = await used();
    profiling.add(profilePath);

    const steps = count * stepsPerMachine;
    return [
      rate("steps_per_s", "steps committed", steps, drained.seconds),
      limitFigure(limit),
      ...costs("", "step", usage, steps),
      workerCpu(drained.workerCpuMs, steps),
    ];
  },
};
