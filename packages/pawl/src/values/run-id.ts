/** Ids of runs: which texts can be one, and the error for a run that does not exist. Pure. */

import { InvalidOption, RunNotFound } from "./errors.js";
import { show } from "./show.js";

/** Whether this can be the id of a run: a positive number of at most 63 bits, in decimal. */
export function isRunId(value: unknown): value is string {
  return typeof value === "string" && /^[1-9]\d{0,18}$/.test(value) && BigInt(value) < 2n ** 63n;
}

/** The id, if it can be one. No run has any other text as its id. */
export function checkRunId(runId: unknown): string {
  if (isRunId(runId)) return runId;
  if (typeof runId === "string") throw notFound(runId);
  throw new InvalidOption(`a run id must be a string, not ${show(runId)}`);
}

export function notFound(runId: string): RunNotFound {
  return new RunNotFound(`there is no run ${show(runId, 60)}`);
}
