/**
 * What the code of a user sees as `ctx`: who it is, how often it was tried, what it works on, and the helpers that
 * make outcomes. Types only; the executor makes the objects, with `stepHelpers` as their helpers. The helpers are
 * members of function type and not methods, because they may be destructured.
 */

import type { Duration } from "./duration.js";
import type { JsonSafe } from "./json-types.js";
import type { Logger } from "./logger.js";
import type { Done, Next, NextOptions, Retry, Stop } from "./outcome.js";

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
export interface JobContext extends RunContext {}

/** The argument of a step. `State` is what it reads, `Given` what may be given for the next step. */
export interface StepContext<
  Step extends string = string,
  State = unknown,
  Given = State,
> extends RunContext {
  readonly step: Step;
  readonly state: State;
  /** Go to `step`. */
  readonly next: (step: Step, state: Given, options?: NextOptions) => Next;
  /** This step again, after `delay`. */
  readonly retry: (state: Given, delay: Duration) => Retry;
  /** The run is done. */
  readonly done: DoneHelper;
  /** The run has failed. An error, a text or any other value is recorded as the reason. */
  readonly stop: (reason: unknown) => Stop;
}

interface DoneHelper {
  (): Done<undefined>;
  <const Result>(result: Result & JsonSafe<Result>): Done<Result>;
}
