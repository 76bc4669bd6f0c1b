/**
 * Says what follows from a committed transition: the event of its step, the runs that it started,
 * the end of the run, and when the run is due again. Pure, and the only switch over transitions
 * after the commit. `commit.ts` applies all of it. The server applies the hints alone, for commits
 * of remote workers: such a worker emits the events and counts the metrics in its own process.
 */

import type { Hub } from "../local/hub.js";
import type { StepEnd } from "../observe/observer.js";
import type { Commit, EndedRun, NewRun } from "../store/store.js";

export interface Effects {
  /** The event of the step that returned. */
  readonly step: StepEnd;
  /** How long until the run can be claimed again; null: no time is known, or the claim is kept. */
  readonly dueMs: number | null;
  /** The runs that the transition started. */
  readonly started: readonly NewRun[];
  /** How the run ended; null: it goes on. */
  readonly ended: EndedRun | null;
  /** The error of a failed attempt or of a failed run, as JSON. */
  readonly error: string | null;
}

const goesOn: Effects = { step: "step.completed", dueMs: null, started: [], ended: null, error: null };

/**
 * `suspendedMs`: how long until the first wait of a suspended workflow is due; null: no wait has a
 * time.
 */
export function effectsOf(
  { runId, transition }: Pick<Commit, "runId" | "transition">,
  suspendedMs: number | null,
): Effects {
  switch (transition.kind) {
    case "keep":
      return goesOn;
    case "next":
      return { ...goesOn, dueMs: 0 };
    case "retry":
      return { ...goesOn, step: "step.retried", dueMs: transition.delayMs, error: transition.error };
    case "await":
      return { ...goesOn, dueMs: transition.delayMs };
    case "suspend":
      return { ...goesOn, dueMs: suspendedMs };
    case "spawn":
      return { ...goesOn, started: transition.children };
    case "done":
      return { ...goesOn, ended: { runId, phase: "done", result: transition.result, error: null } };
    case "stop": {
      const { error } = transition;
      return {
        ...goesOn,
        step: "step.failed",
        ended: { runId, phase: "failed", result: null, error },
        error,
      };
    }
  }
}

/**
 * Tells this process about it: workers that serve the queue, the parent of the run, and callers
 * that wait for its end. Hints only: polls find everything that a hint missed.
 */
export function sendHints(
  hub: Hub,
  { queue, parentId }: Pick<Commit, "queue" | "parentId">,
  { dueMs, started, ended }: Effects,
): void {
  if (dueMs !== null && queue !== undefined) hub.expect(queue, dueMs);
  if (started.length > 0) {
    for (const one of new Set(started.map((child) => child.queue))) hub.hint(one);
  }
  if (ended === null) return;
  if (parentId !== null) hub.delivered(parentId);
  hub.announce(ended);
}
