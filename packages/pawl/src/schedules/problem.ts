/**
 * Says in a sentence what is wrong with a schedule: it cannot start its runs, nobody fires it, nobody
 * serves its definition, or its last run failed. Pure. Used by `schedules.get` and `pawl doctor`.
 */

import type { ScheduleHealth } from "../store/schedule-store.js";

/** A schedule that should have fired longer ago is fired by nobody. */
const lateMs = 60_000;

/** null: nothing is wrong. */
export function problemOf(schedule: ScheduleHealth): string | null {
  const { run, failures, error, lastRun, lastRunId } = schedule;
  const definition = run.version === null ? run.name : `${run.name}@${run.version}`;
  if (failures > 0) {
    const ticks = failures === 1 ? "the last tick" : `the last ${failures} ticks`;
    return `${ticks} could not start a run of ${definition}: ${error?.message ?? "unknown error"} (${error?.code ?? ""})`;
  }
  if (schedule.lateMs !== null && schedule.lateMs > lateMs) {
    const seconds = Math.round(schedule.lateMs / 1_000);
    return `it should have fired ${seconds} s ago: start a worker or a server, or read their logs`;
  }
  if (!schedule.isServed) {
    return `no live worker serves ${definition}: its runs wait until you start one`;
  }
  if (lastRun?.phase === "failed") {
    return `its last run ${lastRunId} failed: ${lastRun.error?.message ?? "unknown error"}`;
  }
  return null;
}
