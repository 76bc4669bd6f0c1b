/**
 * The database calls behind a client: start, signal, cancel, read. Each is one transaction and
 * answers after it is committed. Values are JSON text, encoded and decoded by the callers. An error
 * means that the call as a whole failed, or, if it is `Unavailable`, that its outcome is unknown.
 * `postgres/` implements it. A client does not call it directly, but through its transport
 * (`client-transport.ts`), which adds batches and the shortcuts of its process.
 */

import type { Json } from "../values/json-types.js";
import type { Phase, Status } from "../values/phase.js";
import type { ListedStep, StepCursor } from "./journal.js";
import type { Prefixes } from "./reports/reports.js";
import type { Claim, Claimable, ClaimedRun, NewRun, RunExtra, StartedRun, StoredLimit } from "./runs.js";
import type { Pause } from "./views.js";
import type { WhyFacts } from "./why-facts.js";

export interface NewSignal {
  readonly runId: string;
  readonly name: string;
  readonly payload: string;
  readonly dedupKey: string | null;
}

/** Free slots of a worker: the run that a signal wakes may fill one of them at once. */
export interface Offer extends Claim {
  readonly queues: readonly string[];
}

/** The run that a signal is for. */
export interface SignalTarget {
  readonly name: string;
  readonly trace: string | null;
}

export type SignalVerdict = "delivered" | "duplicate" | "not_found" | "ended" | "full";

export interface Cancellation {
  readonly verdict: "cancelled" | "already" | "ended" | "not_found";
  readonly phase: Phase | null;
  /** The runs that this call has cancelled. */
  readonly runIds: readonly string[];
  /** Their definitions, in the same order. */
  readonly names: readonly string[];
  /** Those of them that lost their unique key to another run. */
  readonly lost: readonly { readonly runId: string; readonly name: string; readonly version: number }[];
  readonly claimable: readonly Claimable[];
}

/** The caller as the action log names it. */
export interface Actor {
  /** The name of a token, or "local". */
  readonly who: string;
  /** The address of the caller, "cli" or "library". */
  readonly from: string;
}

/** How to repeat a run; null: as it was. */
export interface RerunRequest {
  /** The step to begin with, or "start". */
  readonly from: string | null;
  readonly input: string | null;
  readonly state: string | null;
  readonly version: number | null;
  /** A second rerun of the run with this key answers the first one. */
  readonly idempotencyKey: string | null;
}

/** The answer of a rerun, see `rerun.sql`. */
export type RerunVerdict =
  | {
      readonly kind: "rerun";
      readonly runId: string;
      /** false: a rerun with the same idempotency key came before. */
      readonly created: boolean;
      readonly name: string;
      readonly version: number;
      readonly queue: string;
    }
  | { readonly kind: "not_found" | "active" | "no_steps" | "no_state" | "no_input" }
  /** `runId` has the idempotency key, and does not repeat the run. */
  | { readonly kind: "key_conflict"; readonly runId: string }
  /** `steps`: the steps of the journal, or the step at which the run ended. */
  | {
      readonly kind: "unknown_step" | "waited_for_children" | "signals_lost";
      readonly steps: readonly string[];
    };

/** The same without what only the database's own process needs to know. */
export type RerunAnswer =
  | Exclude<RerunVerdict, { kind: "rerun" }>
  | { readonly kind: "rerun"; readonly runId: string; readonly created: boolean };

export type BulkAction = "cancel" | "rerun" | "pause" | "resume" | "signal" | "delete";

/** The action of a bulk operation on each run. Values are JSON text. */
export interface BulkSettings {
  readonly reason?: string;
  readonly cascade?: boolean;
  readonly from?: string;
  readonly input?: string;
  readonly state?: string;
  readonly version?: number;
  readonly signal?: string;
  readonly payload?: string;
  readonly dedupKey?: string;
}

/** A bulk operation, as `work_bulk.sql` keeps it. */
export interface StoredBulk {
  readonly id: string;
  readonly status: "working" | "completed" | "stopped" | "failed";
  readonly action: BulkAction;
  /** The filter, as it was given. */
  readonly where: Readonly<Record<string, Json>>;
  readonly who: string;
  /** How many runs matched when it began. */
  readonly counted: number;
  /** How many runs it has acted on. */
  readonly done: number;
  /** How many it left alone, such as runs that have ended before. */
  readonly skipped: number;
  /** How many the database refused to change. */
  readonly failed: number;
  /** Why the operation as a whole was given up. */
  readonly error: string | null;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
}

/** One run of a bulk operation. */
export interface StoredBulkResult {
  readonly runId: string;
  readonly outcome: "pending" | "done" | "skipped" | "failed";
  /** Why it was skipped, or the error. */
  readonly reason: string | null;
  /** The run that repeats it. */
  readonly rerunId: string | null;
}

/** A line of the action log. */
export interface StoredAction extends Actor {
  readonly id: string;
  readonly at: Date;
  /** The action, such as "runs.cancel". */
  readonly action: string;
  /** The id or name of the thing. */
  readonly target: string | null;
  readonly detail: Json;
}

/** The filters of the action log; null: no filter. */
export interface ActionFilter {
  readonly who: string | null;
  readonly action: string | null;
  readonly target: string | null;
  readonly since: Date | null;
  readonly until: Date | null;
  /** Lines before the one with this id. */
  readonly before: string | null;
  readonly limit: number;
}

export interface EndedRun {
  readonly runId: string;
  /** null: there is no such run. */
  readonly phase: "done" | "failed" | "cancelled" | null;
  readonly result: string | null;
  readonly error: string | null;
}

export interface StoredRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly kind: string | null;
  readonly phase: Phase;
  readonly step: string | null;
  readonly attempt: number;
  readonly queue: string;
  readonly priority: number;
  readonly input: string;
  readonly state: string | null;
  readonly result: string | null;
  readonly error: string | null;
  readonly parentId: string | null;
  readonly idempotencyKey: string | null;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
  readonly eligibleAt: Date | null;
  readonly expiresAt: Date | null;
  readonly extra: RunExtra;
  readonly paused: Pause | null;
}

/** A signal to all live runs of a correlation key. */
export interface CorrelatedSignal extends Omit<NewSignal, "runId"> {
  readonly correlationKey: string;
  /** Only runs of this definition; null: of any. */
  readonly definition: string | null;
}

export interface CorrelatedAnswer {
  readonly runId: string;
  /** The name of its definition. */
  readonly name: string;
  readonly verdict: SignalVerdict;
}

/** One key, and the definition of its runs; null: all definitions. */
export interface FindQuery {
  readonly idempotencyKey: string | null;
  readonly uniqueKey: Uint8Array | null;
  readonly correlationKey: string | null;
  readonly name: string | null;
}

export interface RunFilter {
  readonly name: string | null;
  readonly version: number | null;
  readonly phases: readonly Phase[] | null;
  readonly queue: string | null;
  readonly kind: string | null;
  /** The code of its error, or the name of an error without a code. */
  readonly error: string | null;
  readonly parentId: string | null;
  readonly since: Date | null;
  readonly until: Date | null;
  readonly before: { readonly startedAt: string; readonly runId: string } | null;
  /** JSON that the input contains. */
  readonly input: string | null;
  /** All of these. */
  readonly tags: Readonly<Record<string, string>> | null;
  readonly correlationKey: string | null;
  /** Only runs that are paused themselves. */
  readonly paused?: boolean;
  /** Only runs whose name and queue begin with one of these; null: all. */
  readonly prefixes?: Prefixes | null;
  readonly limit: number;
}

/** How many runs of a name there are. */
export interface RunCounts {
  readonly name: string;
  readonly counts: Readonly<Record<Status, number>>;
}

/** A gauge of the metrics that only the database knows, with the values of its labels. */
export interface StoredGauge {
  readonly gauge:
    | "depth"
    | "age"
    | "unserved"
    | "throttled"
    | "slots"
    | "executing"
    | "blocked"
    | "paused"
    | "pause_age"
    | "bulk_left"
    | "bulk_idle"
    | "workers";
  readonly first: string | null;
  readonly second: string | null;
  readonly value: number;
}

export interface ClientStore {
  /**
   * Starts runs. The call fails rather than wait long for a key that an open transaction is about
   * to take.
   */
  start(
    runs: readonly NewRun[],
    options: { allOrNothing: boolean; claim: Claim | null },
  ): Promise<StartedRun[]>;
  /**
   * Delivers signals. With `patient: false` the call fails rather than wait long for a locked run.
   * If there is an `offer`, a single signal hands over the run that it wakes.
   */
  signal(
    signals: readonly NewSignal[],
    options: { patient: boolean; offer?: Offer | null },
  ): Promise<{
    verdicts: SignalVerdict[];
    /** The runs that they are for, in the same order; null: there is no such run. */
    targets: (SignalTarget | null)[];
    claimable: Claimable[];
    handed: { queue: string; run: ClaimedRun } | null;
  }>;
  /** Delivers a signal to all live runs of a correlation key. */
  signalCorrelated(
    signal: CorrelatedSignal,
    options: { patient: boolean },
  ): Promise<{ answers: CorrelatedAnswer[]; claimable: Claimable[] }>;
  /** The runs of a key, live ones first, each newest first, up to the limit and 16 MiB. */
  find(query: FindQuery, limit: number): Promise<StoredRun[]>;
  /** With `by`, the action log gets a line. */
  cancel(
    runId: string,
    options: { reason: string | null; cascade: boolean; by?: Actor },
  ): Promise<Cancellation>;
  /** Repeats an ended run as a new run. */
  rerun(runId: string, request: RerunRequest, by: Actor): Promise<RerunVerdict>;
  why(runId: string): Promise<WhyFacts | null>;
  /**
   * Sets a limit. Answers whether the old limit has postponed runs that `bringForward` should move.
   * With `by`, a change is a line of the action log.
   */
  setLimit(limit: StoredLimit, by?: Actor): Promise<boolean>;
  /**
   * Moves up to this many runs forward that a limit postponed before it was changed. Answers how
   * many.
   */
  bringForward(limit: number): Promise<number>;
  limits(): Promise<StoredLimit[]>;
  get(runIds: readonly string[]): Promise<StoredRun[]>;
  /** How many runs a listing would show on all its pages. */
  count(filter: RunFilter): Promise<number>;
  /** A page, up to the limit and 16 MiB. `last`: where the next page begins, null at the end. */
  list(filter: RunFilter): Promise<{ runs: StoredRun[]; last: { startedAt: string; runId: string } | null }>;
  /** A page of the steps of a run, likewise. */
  steps(runId: string, after: StepCursor | null): Promise<{ steps: ListedStep[]; last: StepCursor | null }>;
  /**
   * The runs among these that have ended or do not exist, up to 16 MiB of results. `more`: ask
   * again for the rest.
   */
  ended(runIds: readonly string[]): Promise<{ runs: EndedRun[]; more: boolean }>;
  /**
   * The names among these that no worker has ever registered, each with registered names of about
   * its length.
   */
  unregistered(names: readonly string[]): Promise<{ name: string; known: readonly string[] }[]>;
}
