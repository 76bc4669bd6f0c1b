/** The journal of a workflow run as people see it: `runs.steps`. Pure mapping between the store and the public API. */

import type { ErrorRecord } from "./define/error-record.js";
import type { Json } from "./define/json-types.js";
import type { ListedStep, StepKind } from "./store/journal.js";
import { readJournal } from "./store/read-journal.js";
import type { ClientStore } from "./store/store.js";

/** A step of a workflow run. */
export interface Step {
  readonly name: string;
  readonly kind: StepKind;
  readonly status: "pending" | "completed" | "failed";
  /** Its last attempt, counted from 0. */
  readonly attempt: number;
  readonly output: Json | null;
  /** Why it has failed, or failed last. */
  readonly error: ErrorRecord | null;
  /** The run that `step.invoke` has started. */
  readonly childId: string | null;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
  /** When a pending step goes on by itself: the end of a sleep, a timeout, the next attempt. */
  readonly dueAt: Date | null;
}

/** All recorded steps of a run, in the order in which the body got them, then the pending ones. */
export async function listSteps(store: Pick<ClientStore, "journal">, runId: string): Promise<Step[]> {
  const listed = await readJournal(store, runId);
  const order = ({ seq }: ListedStep): number => seq ?? Number.POSITIVE_INFINITY;
  return listed
    .toSorted(
      (one, other) => order(one) - order(other) || one.startedAt.getTime() - other.startedAt.getTime(),
    )
    .map((step) => ({
      name: step.name,
      kind: step.kind,
      status: step.completedAt === null ? "pending" : step.error === null ? "completed" : "failed",
      attempt: step.attempt,
      output: step.output,
      error: step.error,
      childId: step.childId,
      startedAt: step.startedAt,
      completedAt: step.completedAt,
      dueAt: step.completedAt !== null || step.dueAt === null ? null : new Date(step.dueAt),
    }));
}
