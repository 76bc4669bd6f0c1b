/**
 * The phase of a run (exact) and its status (the short form). Written by the store, read by the
 * client and by the parents of children. The scope of a unique key is a list of phases.
 */

/** The exact state of a run. */
export type Phase =
  | "runnable"
  | "executing"
  | "awaiting_signal"
  | "awaiting_children"
  | "done"
  | "failed"
  | "cancelled";

/**
 * The short form of a phase: `done` is "completed", every phase that is not terminal is "running".
 */
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
