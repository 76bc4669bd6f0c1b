/**
 * How long a signal takes to wake a run that is served in the same process, one run after the other
 * on an idle server: from the call of `signal` to the woken step, and until the caller has the
 * result. Used by `signals`.
 */

import { performance } from "node:perf_hooks";
import { connect, serve } from "pawl";
import type { BenchRequest } from "./bench.js";
import { input, waitingMachine, waitsPerMachine } from "./definitions.js";
import { until } from "./observe.js";

const wakeUps = { usual: 1_000, quick: 100, warmUp: 100 };
const concurrency = 10;

export async function measureWakeUps({ database, quick, profiling, signal }: BenchRequest) {
  let enteredMs = Number.NaN;
  const definition = waitingMachine(() => void (enteredMs = performance.now()));
  const worker = serve([definition], { url: database.url, queues: { default: concurrency } });
  const pawl = connect(database.url);
  const oneAfterTheOther = async (runs: number) => {
    const toStepMs: number[] = [];
    const toResultMs: number[] = [];
    for (let run = 0; run < runs; run++) {
      const { runId } = await pawl.start(definition, { ...input, visited: waitsPerMachine - 1 });
      await until(async () => (await pawl.runs.get(runId)).phase === "awaiting_signal", signal);
      const beginMs = performance.now();
      await pawl.signal(runId, "go");
      await pawl.result(runId, { timeout: "30s" });
      toResultMs.push(performance.now() - beginMs);
      toStepMs.push(enteredMs - beginMs);
    }
    return { toStepMs, toResultMs };
  };
  try {
    await worker.ready;
    await oneAfterTheOther(wakeUps.warmUp);
    return await profiling.server("wake-ups", database, () =>
      oneAfterTheOther(quick ? wakeUps.quick : wakeUps.usual),
    );
  } finally {
    await pawl.close();
    await worker.stop();
  }
}
