/**
 * The journals of workflow runs as they cross the boundary of the store: what is recorded, what is to be recorded, and the answers.
 * Types only.
 */

import type { ErrorRecord } from "../values/error-record.js";
import type { Json } from "../values/json-types.js";
import type { NewRun } from "./runs.js";
import type { Verdict } from "./transitions.js";

/** A step in the journal of a workflow run. */
export interface StoredStep {
  readonly name: string;
  readonly kind: StepKind;
  /** The order in which completed steps are given to the body; null: pending. */
  readonly seq: number | null;
  /** How often it has failed. */
  readonly attempt: number;
  /** The run that an invoke has started. */
  readonly childId: string | null;
  /** Of a pending step: how long until it is due, at most 0 if it is; null: it has no due time. */
  readonly dueMs: number | null;
  readonly dueAt: string | null;
  readonly output: Json | null;
  readonly error: ErrorRecord | null;
}

/** A step as it is listed. */
export interface ListedStep extends StoredStep {
  readonly startedAt: Date;
  readonly completedAt: Date | null;
}

/** Where a page of steps ends: the seq of the last completed one, and the last pending one, if there was one. */
export interface StepPlace {
  readonly seq: number;
  readonly startedAt: string | null;
  readonly name: string | null;
}

export type StepKind = "run" | "sleep" | "wait" | "invoke" | "transaction";

/** One entry for the journal of a workflow run (see `record.sql`). `seq` is its place in the order of delivery, if it completes. */
export interface JournalEntry {
  readonly runId: string;
  readonly claimId: string;
  readonly name: string;
  readonly seq: number;
  /** The seq of the last signal that the body knows of. */
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
  /** It has failed and is to be tried again. */
  | {
      readonly op: "retry";
      readonly kind: "run" | "transaction";
      readonly attempt: number;
      readonly error: string;
      readonly delayMs: number;
    }
  /** Is it time for that? */
  | { readonly op: "due" }
  /** The wait begins, or is it over? */
  | { readonly op: "sleep"; readonly delayMs: number | null; readonly at: Date | null }
  | {
      readonly op: "wait";
      readonly event: string;
      readonly match: string | null;
      readonly delayMs: number | null;
    }
  | { readonly op: "invoke"; readonly child: NewRun };

export type RecordVerdict =
  /** Recorded. `inboxSeq`: the inbox has more than the worker knows, up to this seq. */
  | { readonly kind: "recorded"; readonly inboxSeq: number | null }
  /** The wait is over, or an earlier call has recorded the step. */
  | {
      readonly kind: "done";
      readonly seq: number;
      readonly output: Json | null;
      readonly error: ErrorRecord | null;
    }
  /** Not yet. Signals were tried up to `inboxSeq`. */
  | {
      readonly kind: "pending";
      readonly inboxSeq: number;
      readonly childId: string | null;
      readonly dueMs: number | null;
      readonly dueAt: string | null;
    }
  /** As for commits. */
  | Extract<Verdict, { kind: "stale" | "busy" | "failed" }>;
