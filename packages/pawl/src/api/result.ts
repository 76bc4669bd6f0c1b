/** `result` for both transports: its options, and what the end of a run means to who waits for it. */

import { toMilliseconds } from "../values/duration.js";
import type { ErrorRecord } from "../values/error-record.js";
import { ResultTimeout, RunCancelled, RunFailed } from "../values/errors.js";
import { fromJson } from "../values/json.js";
import { checkOptions } from "../values/options.js";
import type { ResultOptions } from "./pawl.js";
import { notFound } from "./send.js";
import type { EndedRun } from "../store/store.js";

/** How long to wait, in milliseconds; null: for ever. */
export function checkTimeout(options: ResultOptions): number | null {
  const { timeout } = checkOptions(options, ["timeout"], "the options of result");
  return timeout === undefined ? null : toMilliseconds(timeout, "timeout");
}

/** The output of a run that is done; throws whatever else came of it. */
export function toOutput(runId: string, ended: EndedRun | null, timeoutMs: number | null): unknown {
  if (ended === null) {
    throw new ResultTimeout(`run ${runId} has not ended within ${timeoutMs} ms; it goes on`);
  }
  const error = ended.error === null ? null : (fromJson(ended.error) as unknown as ErrorRecord);
  switch (ended.phase) {
    case "done":
      return fromJson(ended.result ?? "null");
    case "failed":
      throw new RunFailed(runId, error ?? { name: "Error", message: "no error was recorded" });
    case "cancelled":
      throw new RunCancelled(runId, error?.message);
    case null:
      throw notFound(runId);
  }
}
