/**
 * `signals`: how many times per second waiting runs are woken and wait again, and how long one
 * wake-up takes. A cycle is a signal, the claim of the run it woke, the step that consumes it, and
 * the step that waits for the next. This process sends signals to waiting runs only; the worker is
 * a separate process.
 */

import { connect, type Pawl, type RunId } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { plain, waitingMachine, waitsPerMachine } from "./definitions.js";
import { drain } from "./drain.js";
import { startInBatches } from "./enqueue.js";
import { commitFigure, costs, limitFigure, percentiles, rate, workerCpu } from "./figures.js";
import { besideLimit } from "./raw-limit.js";
import { databaseTime, emptyDatabase, parkedRuns, until } from "./observe.js";
import { countUsage, type Usage } from "./usage.js";
import { measureWakeUps } from "./wake-ups.js";

type WaitingId = RunId<ReturnType<typeof waitingMachine>>;

export const signals: Bench = {
  defaults: { count: 2_000, quickCount: 300, concurrency: 2_000 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { observer } = request.database;
    const { limit, result } = await besideLimit(observer, request.quick, () => cycleAll(request));
    await emptyDatabase(observer);
    const wakeUps = await measureWakeUps(request);
    const cycles = request.count * waitsPerMachine;
    return [
      rate("cycles_per_s", "waits ended by a signal and begun again", cycles, result.drained.seconds),
      limitFigure(limit),
      ...costs("", "cycle", result.usage, cycles),
      workerCpu(result.drained.workerCpuMs, cycles * 2),
      ...percentiles("wake_", "signal to woken step, one process", wakeUps.toStepMs),
      ...percentiles("result_", "signal to result, one process", wakeUps.toResultMs),
      commitFigure(limit),
    ];
  },
};

async function cycleAll({ database, count, concurrency, profiling, signal }: BenchRequest) {
  const { observer } = database;
  const definition = waitingMachine();
  const pawl = connect(database.url);
  const profilePath = profiling.pathFor("worker");
  const request = {
    database,
    definition: "waiting",
    concurrency,
    expected: count,
    profilePath,
    signal,
  } as const;
  let used: () => Promise<Usage>;
  try {
    await startInBatches(pawl, definition, count, plain);
    const drained = await profiling.server("cycles", database, () =>
      drain(request, definition.name, async ({ deadline }) => {
        const parked = (): Promise<WaitingId[]> => parkedRuns(observer, definition.name, count);
        await until(async () => (await parked()).length === count, deadline);
        used = await countUsage(database);
        const since = await databaseTime(observer);
        await profiling.client("signal", () => signalParked(pawl, parked, count * waitsPerMachine, deadline));
        return since;
      }),
    );
    profiling.add(profilePath);
    return { drained, usage: await used!() };
  } finally {
    await pawl.close();
  }
}

/** Sends so many signals, each to a run that waits for it. */
async function signalParked(
  pawl: Pawl,
  parked: () => Promise<WaitingId[]>,
  signalCount: number,
  deadline: AbortSignal,
): Promise<void> {
  let sent = 0;
  await until(async () => {
    const runIds = await parked();
    await Promise.all(runIds.map((runId) => pawl.signal(runId, "go")));
    sent += runIds.length;
    return sent >= signalCount;
  }, deadline);
}
