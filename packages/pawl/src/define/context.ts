/**
 * The `ctx` of jobs and steps: identity, attempt, state and the helpers that make outcomes. Types
 * only; the executor makes the objects and adds `stepHelpers`. The helpers are members of function
 * type, not methods, because users may destructure them.
 */

import type { Child } from "./child.js";
import type { Duration } from "../values/duration.js";
import type { ErrorRecord } from "../values/error-record.js";
import type { Json, JsonSafe } from "../values/json-types.js";
import type { Logger } from "../values/logger.js";
import type {
  AwaitOptions,
  AwaitSignal,
  Done,
  Next,
  NextOptions,
  Outcome,
  Retry,
  Spawn,
  Stop,
} from "./outcome.js";
import type { ScheduleTick } from "./schedule-key.js";
import type { Status } from "../values/phase.js";
import type { MatchOf, PayloadOf, ReceivedSignal, SignalMap } from "./signal.js";
import type { Tags } from "./start-options.js";
import type { Transaction } from "./transaction.js";

/** The members that jobs and steps share. */
interface RunContext {
  readonly runId: string;
  /**
   * The first run of the chain of reruns; `runId` if this is no rerun. Make idempotency keys from
   * it: a rerun then uses the same ones.
   */
  readonly originRunId: string;
  /** The name and version of the definition. */
  readonly name: string;
  readonly version: number;
  /** The tags of the run, as its start gave them. Its children take them unless they have others. */
  readonly tags: Tags;
  /** The number of attempts before this one: 0 at first. */
  readonly attempt: number;
  /** The schedule that started the run, and its tick; null: no schedule did. */
  readonly schedule: ScheduleTick | null;
  /**
   * Aborted when the run is cancelled or the worker loses the claim. Later results are not
   * recorded.
   */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** The first argument of a job's `run`. */
export interface JobContext extends RunContext {
  /**
   * Runs SQL in the transaction that commits the result: `return ctx.transaction(async (tx) => …)`.
   * Its return value is the result. If it throws, the transaction rolls back and the attempt fails.
   * Pawl calls it again if it loses the database while it runs.
   */
  readonly transaction: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>;
}

/** A run that `ctx.spawn` started, as the next step sees it. */
export interface ChildRun {
  readonly runId: string;
  /** The name of its definition. */
  readonly name: string;
  /** "running" only if the parent did not wait for it. */
  readonly status: Status;
  readonly output: Json | null;
  readonly error: ErrorRecord | null;
  /**
   * False if its key was taken. Then this is the run that holds the key; the parent did not wait
   * for it.
   */
  readonly created: boolean;
}

/**
 * The argument of a step. `State` is the state it reads, `Signals` the declared signals, `Given`
 * the state it may pass on.
 */
export interface StepContext<
  Step extends string = string,
  State = unknown,
  Signals extends SignalMap = SignalMap,
  Given = State,
> extends RunContext {
  readonly step: Step;
  readonly state: State;
  /**
   * After `awaitSignal`: the awaited signals, oldest first. Consumed when the run moves to another
   * step.
   */
  readonly awaited: readonly ReceivedSignal<Signals>[];
  /** All signals in the inbox when the step began, oldest first. */
  readonly inbox: readonly ReceivedSignal<Signals>[];
  /** After `awaitSignal`: whether the timeout passed before a signal arrived. */
  readonly timedOut: boolean;
  /** After `spawn`: the children, in the order you passed them. */
  readonly children: readonly ChildRun[];
  /** Go to `step`. */
  readonly next: (step: Step, state: Given, options?: NextOptions) => Next;
  /** Run this step again after `delay`. */
  readonly retry: (state: Given, delay: Duration) => Retry;
  /** Go to `nextStep` when a signal of one of these names arrives, or the timeout passes. */
  readonly awaitSignal: <Name extends keyof Signals & string>(
    names: Name | readonly Name[],
    nextStep: Step,
    state: Given,
    options?: AwaitOptions<MatchOf<PayloadOf<Signals[Name]>>>,
  ) => AwaitSignal;
  /**
   * Start these children and go to `nextStep` when all have completed, failed or been cancelled.
   */
  readonly spawn: (nextStep: Step, children: readonly Child[], state: Given) => Spawn;
  /**
   * Runs SQL in the transaction that commits the outcome: `return ctx.transaction(async (tx) => {
   * …; return ctx.next(…) })`. If it throws, the transaction rolls back and the step fails with
   * that error. Pawl calls it again if it loses the database while it runs.
   */
  readonly transaction: <Returned extends Outcome>(
    work: (tx: Transaction) => Promise<Returned>,
  ) => Promise<Returned>;
  /** Complete the run with this result. */
  readonly done: DoneHelper;
  /** Fail the run. Pawl records the reason: an error, a string or any other value. */
  readonly stop: (reason: unknown) => Stop;
}

interface DoneHelper {
  (): Done<undefined>;
  <const Result>(result: Result & JsonSafe<Result>): Done<Result>;
}
