/**
 * Bounds on how long somebody waits for a promise: `maxStepDuration` for user code, and the wait of
 * a worker that stops for calls that the database may never answer.
 */

import { StepTimeout } from "../values/errors.js";

/**
 * The value that user code promised, or `StepTimeout` after this time; then `onTimeout` can tell
 * the code.
 */
export function withinTime(
  promised: PromiseLike<unknown>,
  longestMs: number | null,
  onTimeout: (error: StepTimeout) => void,
): PromiseLike<unknown> {
  if (longestMs === null) return promised;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const error = new StepTimeout(`the step ran longer than ${longestMs} ms (maxStepDuration)`);
      onTimeout(error);
      reject(error);
    }, longestMs);
    void Promise.resolve(promised)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  });
}

/** Whether it must be awaited: a promise, or a query builder's query. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (value instanceof Promise) return true;
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** Waits for a call, but not longer than this. Its failure changes nothing. */
export async function giveUpAfter(longestMs: number, call: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    call.catch(() => {}),
    new Promise((resolve) => (timer = setTimeout(resolve, longestMs))),
  ]);
  clearTimeout(timer);
}
