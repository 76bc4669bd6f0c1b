/**
 * `result`: its options, and the output or error that the end of a run means. Used by the client.
 */

import { toMilliseconds } from "../values/duration.js";
import { readErrorRecord } from "../values/error-record.js";
import { ResultTimeout, RunCancelled, RunFailed } from "../values/errors.js";
import { fromJson } from "../values/json.js";
import { checkOptions } from "../values/options.js";
import type { ResultOptions } from "./pawl.js";
import type { EndedRun } from "../store/client-store.js";
import { notFound } from "../values/run-id.js";

/** How long to wait, in milliseconds; null: without a limit. */
export function checkTimeout(options: ResultOptions): number | null {
  const { timeout } = checkOptions(options, ["timeout"], "the options of result");
  return timeout === undefined ? null : toMilliseconds(timeout, "timeout");
}

/**
 * The output of a run that is done. Throws if it failed, was cancelled, does not exist or has not
 * ended.
 */
export function toOutput(runId: string, ended: EndedRun | null, timeoutMs: number | null): unknown {
  if (ended === null) {
    throw new ResultTimeout(`run ${runId} has not ended within ${timeoutMs} ms; it continues`);
  }
  const error = ended.error === null ? null : readErrorRecord(fromJson(ended.error));
  switch (ended.phase) {
    case "done":
      return fromJson(ended.result ?? "null");
    case "failed":
      throw new RunFailed(runId, error ?? readErrorRecord(null));
    case "cancelled":
      throw new RunCancelled(runId, error?.message);
    case null:
      throw notFound(runId);
  }
}
