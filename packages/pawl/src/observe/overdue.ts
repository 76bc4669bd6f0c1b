/**
 * The events of runs that failed because their deadline has passed. Emitted by the process that
 * failed them: a sweeper, or the worker that executed the run.
 */

import type { OverdueRun } from "../store/store.js";
import type { Emitter } from "./events.js";

export function emitOverdue(events: Emitter, failed: readonly OverdueRun[]): void {
  if (!events.hears("run.completed")) return;
  for (const { runId, name, startedMs } of failed) {
    const durationMs = Math.max(Date.now() - startedMs, 0);
    events.emit("run.completed", { runId, name, status: "failed", code: "DeadlineExceeded", durationMs });
  }
}
