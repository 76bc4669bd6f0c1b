/**
 * The journals of workflow runs: stored steps, entries that workers record, and the answers. Types
 * only.
 */

import type { ErrorRecord } from "../values/error-record.js";
import type { Json } from "../values/json-types.js";
import type { NewRun } from "./runs.js";
import type { Verdict } from "./transitions.js";

/** A step in the journal of a workflow run. */
export interface StoredStep {
  readonly name: string;
  readonly kind: StepKind;
  /** The order in which the body gets completed steps; null: pending. */
  readonly seq: number | null;
  /** How often it has failed. */
  readonly attempt: number;
  /** The run that an invoke started. */
  readonly childId: string | null;
  /**
   * Of a pending step: how long until it is due, 0 or less if it is due now; null: it has no due
   * time.
   */
  readonly dueMs: number | null;
  readonly dueAt: string | null;
  readonly output: Json | null;
  readonly error: ErrorRecord | null;
}

/** A step with its times, as listings show it. */
export interface ListedStep extends StoredStep {
  readonly startedAt: Date;
  readonly completedAt: Date | null;
}

/**
 * Where a page of steps ends: the seq of its last completed step, and its last pending step, if
 * any.
 */
export interface StepCursor {
  readonly seq: number;
  readonly startedAt: string | null;
  readonly name: string | null;
}

export type StepKind = "run" | "sleep" | "wait" | "invoke" | "transaction";

/**
 * One entry for the journal of a workflow run (see `record.sql`). `seq` is its position in the
 * order of delivery, if it completes.
 */
export interface JournalEntry {
  readonly runId: string;
  readonly claimId: string;
  readonly name: string;
  readonly seq: number;
  /** The seq of the last signal that the body knows. */
  readonly inboxSeq: number;
  readonly change: JournalChange;
}

export type JournalChange =
  /** The step has completed. */
  | {
      readonly op: "run" | "transaction";
      readonly attempt: number;
      readonly output: string | null;
      readonly error: string | null;
      readonly tookMs: number;
    }
  /** The attempt failed, and the step is retried. */
  | {
      readonly op: "retry";
      readonly kind: "run" | "transaction";
      readonly attempt: number;
      readonly error: string;
      readonly delayMs: number;
    }
  /** Asks whether the retry is due. */
  | { readonly op: "due" }
  /** Begins the wait, or asks whether it is over. */
  | { readonly op: "sleep"; readonly delayMs: number | null; readonly at: Date | null }
  | {
      readonly op: "wait";
      readonly event: string;
      readonly match: string | null;
      readonly delayMs: number | null;
    }
  | { readonly op: "invoke"; readonly child: NewRun };

/** `paused`: the run is paused and must begin no further step. */
export type RecordVerdict =
  /** Recorded. `inboxSeq`: the inbox has signals up to this seq that the worker does not know. */
  | { readonly kind: "recorded"; readonly inboxSeq: number | null; readonly paused?: boolean }
  /** The wait is over, or an earlier call recorded the step. */
  | {
      readonly kind: "done";
      readonly seq: number;
      readonly output: Json | null;
      readonly error: ErrorRecord | null;
      readonly paused?: boolean;
    }
  /** Not yet. No signal up to `inboxSeq` matched. */
  | {
      readonly kind: "pending";
      readonly inboxSeq: number;
      readonly childId: string | null;
      readonly dueMs: number | null;
      readonly dueAt: string | null;
      readonly paused?: boolean;
    }
  /** The same as for commits. */
  | Extract<Verdict, { kind: "stale" | "busy" | "failed" }>;
