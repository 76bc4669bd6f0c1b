/**
 * What the code of a user sees as `ctx`: who it is, how often it was tried, what it works on, and the helpers that
 * make outcomes. Types only; the executor makes the objects, with `stepHelpers` as their helpers. The helpers are
 * members of function type and not methods, because they may be destructured.
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
import type { Status } from "../values/phase.js";
import type { MatchOf, PayloadOf, ReceivedSignal, SignalMap } from "./signal.js";
import type { Transaction } from "./transaction.js";

/** What jobs and steps have in common. */
interface RunContext {
  readonly runId: string;
  /** The name and version of the definition. */
  readonly name: string;
  readonly version: number;
  /** How often this was tried before: 0 at first. */
  readonly attempt: number;
  /** Aborted when the run is cancelled or the claim is lost: whatever is done from then on is not recorded. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** The first argument of a job's `run`. */
export interface JobContext extends RunContext {
  /**
   * Runs SQL in the very transaction that commits the result: `return ctx.transaction(async (tx) => …)`. What it returns is the result;
   * if it throws, all is rolled back and the attempt has failed. It is called again if the database went away while it ran.
   */
  readonly transaction: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>;
}

/** A run that `ctx.spawn` started, as the step that follows sees it. */
export interface ChildRun {
  readonly runId: string;
  /** The name of its definition. */
  readonly name: string;
  /** "running" only if it was not waited for. */
  readonly status: Status;
  readonly output: Json | null;
  readonly error: ErrorRecord | null;
  /** False if its key was taken: this is the run that holds it, which is not waited for. */
  readonly created: boolean;
}

/**
 * The argument of a step. `State` is what it reads, `Signals` what its definition declares, `Given` what may be given
 * for the next step.
 */
export interface StepContext<
  Step extends string = string,
  State = unknown,
  Signals extends SignalMap = SignalMap,
  Given = State,
> extends RunContext {
  readonly step: Step;
  readonly state: State;
  /** After `awaitSignal`: the signals that it waited for, oldest first. Consumed when the run goes on. */
  readonly awaited: readonly ReceivedSignal<Signals>[];
  /** All signals that were there when the step began and are not consumed, oldest first. */
  readonly inbox: readonly ReceivedSignal<Signals>[];
  /** After `awaitSignal`: whether the timeout passed before a signal came. */
  readonly timedOut: boolean;
  /** After `spawn`: the children, in the order in which they were given. */
  readonly children: readonly ChildRun[];
  /** Go to `step`. */
  readonly next: (step: Step, state: Given, options?: NextOptions) => Next;
  /** This step again, after `delay`. */
  readonly retry: (state: Given, delay: Duration) => Retry;
  /** Go to `nextStep` when a signal of one of these names arrives, or the timeout passes. */
  readonly awaitSignal: <Name extends keyof Signals & string>(
    names: Name | readonly Name[],
    nextStep: Step,
    state: Given,
    options?: AwaitOptions<MatchOf<PayloadOf<Signals[Name]>>>,
  ) => AwaitSignal;
  /** Start these children and go to `nextStep` when all of them have ended, however they did. */
  readonly spawn: (nextStep: Step, children: readonly Child[], state: Given) => Spawn;
  /**
   * Runs SQL in the very transaction that commits the outcome: `return ctx.transaction(async (tx) => { …; return ctx.next(…) })`. If
   * it throws, all is rolled back, and it is an error of the step. It is called again if the database went away while it ran.
   */
  readonly transaction: <Returned extends Outcome>(
    work: (tx: Transaction) => Promise<Returned>,
  ) => Promise<Returned>;
  /** The run is done. */
  readonly done: DoneHelper;
  /** The run has failed. An error, a text or any other value is recorded as the reason. */
  readonly stop: (reason: unknown) => Stop;
}

interface DoneHelper {
  (): Done<undefined>;
  <const Result>(result: Result & JsonSafe<Result>): Done<Result>;
}
