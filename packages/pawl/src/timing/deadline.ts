/** The bound of `maxStepDuration` on what user code promised. Used by the executor and for the steps of workflows. */

import { StepTimeout } from "../values/errors.js";

/** What user code promised, or `StepTimeout` once this time has passed: then `onTimeout` can tell the code. */
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

/** Whether it is to be awaited: a promise, or what a query builder gives. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (value instanceof Promise) return true;
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
