/**
 * The `ctx` of a workflow: its identity, and the steps that the engine records. Types only; the
 * engine makes the objects. The steps are members of function type, not methods, because users may
 * destructure them.
 */

import type { DefinitionOf, InputOf, OutputOf, StartTarget } from "./definition.js";
import type { Duration } from "../values/duration.js";
import type { Json, Jsonify, JsonSafe } from "../values/json-types.js";
import type { Logger } from "../values/logger.js";
import type { Retries } from "./retry.js";
import type { ScheduleTick } from "./schedule-key.js";
import type { MatchOf, PayloadOf, SignalMap } from "./signal.js";
import type { StartOptions, Tags } from "./start-options.js";
import type { Transaction } from "./transaction.js";

/** The first argument of a workflow's `run`. */
export interface WorkflowContext<Signals extends SignalMap = SignalMap> {
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
  /** The schedule that started the run, and its tick; null: no schedule did. */
  readonly schedule: ScheduleTick | null;
  /**
   * Aborted on cancellation, loss of the claim or the end of the body. Later results are not
   * recorded.
   */
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly step: WorkflowSteps<Signals>;
}

/** The argument of a step's function. */
export interface StepRun {
  /** The number of failed attempts before this one: 0 at first. */
  readonly attempt: number;
  /** Aborted like `ctx.signal`, and when the step exceeds the worker's `maxStepDuration`. */
  readonly signal: AbortSignal;
}

/** The options of `step.run` and `step.transaction`. */
export interface StepOptions {
  /** Default: 3 attempts with a backoff of 1 s, then 2 s, and a jitter of 20 %. */
  readonly retry?: Retries | undefined;
}

/** The options of `waitForEvent`. */
export interface EventOptions<
  Event extends string,
  Payload,
  Timeout extends Duration | undefined = Duration,
> {
  /** The name of the signal. Default: the name of the step. */
  readonly event?: Event | undefined;
  /** Members that the payload must have. */
  readonly match?: MatchOf<Payload> | undefined;
  /** How long to wait. Default: forever. */
  readonly timeout?: Timeout | undefined;
}

/** Includes null only if there is a timeout. */
type Received<Payload, Timeout> =
  | (unknown extends Payload ? Json : Jsonify<Payload>)
  | (Timeout extends Duration ? null : never);

/**
 * One signature without overloads, so that the compiler blames the wrong argument. Without `event`,
 * the step name is the name of a signal.
 */
interface WaitForEvent<Signals extends SignalMap> {
  <
    const Name extends string,
    Event extends keyof Signals & string = Name & keyof Signals & string,
    const Timeout extends Duration | undefined = undefined,
  >(
    name: [Event] extends [never] ? keyof Signals & string : Name,
    options?: EventOptions<Event, PayloadOf<Signals[NoInfer<Event>]>, Timeout>,
  ): Promise<Received<PayloadOf<Signals[Event]>, Timeout>>;
}

type InvokeArguments<Input> = undefined extends Input
  ? [input?: Input, options?: StartOptions]
  : [input: Input, options?: StartOptions];

/** The steps of a workflow. Use each name once per run: in a loop, add the index to it. */
export interface WorkflowSteps<Signals extends SignalMap = SignalMap> {
  /**
   * Calls the function and returns its result. A recorded step is never called again. Throws
   * `StepFailed` when its attempts are used up.
   */
  readonly run: <Result>(
    name: string,
    fn: ((step: StepRun) => Result | Promise<Result>) &
      ((step: StepRun) => JsonSafe<NoInfer<Result>> | Promise<JsonSafe<NoInfer<Result>>>),
    options?: StepOptions,
  ) => Promise<Jsonify<Result>>;
  /** Waits this long, or until this time. */
  readonly sleep: (name: string, until: Duration | Date) => Promise<void>;
  /** Waits for a signal and returns its payload, or null after the timeout. */
  readonly waitForEvent: WaitForEvent<Signals>;
  /** Starts a run, waits for its end and returns its result. Throws `ChildFailed`. */
  readonly invoke: <Target extends StartTarget>(
    name: string,
    target: Target,
    ...rest: InvokeArguments<InputOf<DefinitionOf<Target>>>
  ) => Promise<OutputOf<DefinitionOf<Target>>>;
  /**
   * Runs SQL in the transaction that records the step: its writes happen exactly once. Throws
   * `StepFailed`.
   */
  readonly transaction: <Result>(
    name: string,
    fn: ((tx: Transaction, step: StepRun) => Promise<Result>) &
      ((tx: Transaction, step: StepRun) => Promise<JsonSafe<NoInfer<Result>>>),
    options?: StepOptions,
  ) => Promise<Jsonify<Result>>;
}
