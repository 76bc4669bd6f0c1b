/**
 * Lets one worker process drain the started runs, and measures the time on the database's clock.
 * When `drain` settles, the process has ended.
 */

import { lastCompletion, lastRegistration } from "./observe.js";
import { startWorker, type WorkerProcess, type WorkerRequest } from "./worker-process.js";

export interface Drain {
  /**
   * From the registration of the worker, or the time that `meanwhile` answers with, to the last
   * completion.
   */
  readonly seconds: number;
  /** CPU time of the worker process. */
  readonly workerCpuMs: number;
}

/**
 * Drains the expected runs of the definition with this name. `meanwhile` runs beside the worker and
 * may return the time at which the measurement begins.
 */
export async function drain(
  request: WorkerRequest,
  name: string,
  meanwhile?: (worker: WorkerProcess) => Promise<number>,
): Promise<Drain> {
  const { observer } = request.database;
  const worker = await startWorker(request);
  try {
    const since = (await meanwhile?.(worker)) ?? (await lastRegistration(observer));
    const workerCpuMs = await worker.executed;
    const until = await lastCompletion(observer, name, request.expected, worker.deadline);
    return { workerCpuMs, seconds: until - since };
  } finally {
    await worker.stop();
  }
}
