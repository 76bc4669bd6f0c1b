/**
 * Where a run is in its life, as everyone sees it: the phase in full, the status in short. Written by the
 * store, read by the client and by parents of children, and chosen from for the scope of a unique key.
 */

/** The precise status of a run. */
export type Phase =
  | "runnable"
  | "executing"
  | "awaiting_signal"
  | "awaiting_children"
  | "done"
  | "failed"
  | "cancelled";

/** What has become of a run: the terminal phases by name (`done` is "completed"), all others as "running". */
export type Status = "running" | "completed" | "failed" | "cancelled";

export const phasesOf: Record<Status, readonly Phase[]> = {
  running: ["runnable", "executing", "awaiting_signal", "awaiting_children"],
  completed: ["done"],
  failed: ["failed"],
  cancelled: ["cancelled"],
};

export function statusOf(phase: Phase): Status {
  if (phase === "done") return "completed";
  return phase === "failed" || phase === "cancelled" ? phase : "running";
}
