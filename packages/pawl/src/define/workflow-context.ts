/**
 * What the body of a workflow sees as `ctx`: who it is, and the steps that the engine records. Types only; the engine
 * makes the objects. The steps are members of function type and not methods, because they may be destructured.
 */

import type { DefinitionOf, InputOf, OutputOf, StartTarget } from "./definition.js";
import type { Duration } from "../values/duration.js";
import type { Json, Jsonify, JsonSafe } from "../values/json-types.js";
import type { Logger } from "../values/logger.js";
import type { Retries } from "./retry.js";
import type { MatchOf, PayloadOf, SignalMap } from "./signal.js";
import type { StartOptions } from "./start-options.js";
import type { Transaction } from "./transaction.js";

/** The first argument of a workflow's `run`. */
export interface WorkflowContext<Signals extends SignalMap = SignalMap> {
  readonly runId: string;
  /** The name and version of the definition. */
  readonly name: string;
  readonly version: number;
  /** Aborted when the run is cancelled, the claim is lost or the body has ended: nothing done from then on is recorded. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly step: WorkflowSteps<Signals>;
}

/** What the function of a step gets. */
export interface StepRun {
  /** How often this step has failed before: 0 at first. */
  readonly attempt: number;
  /** Aborted like `ctx.signal`, and when the step takes longer than the worker's `maxStepDuration`. */
  readonly signal: AbortSignal;
}

/** The options of `step.run` and `step.transaction`. */
export interface StepOptions {
  /** Default: 3 attempts, 1 s apart, then 2 s, with a jitter of 20 %. */
  readonly retry?: Retries | undefined;
}

/** What `waitForEvent` can ask of an event. */
export interface EventOptions<
  Event extends string,
  Payload,
  Timeout extends Duration | undefined = Duration,
> {
  /** The name of the signal. Default: the name of the step. */
  readonly event?: Event | undefined;
  /** Members that the payload must have. */
  readonly match?: MatchOf<Payload> | undefined;
  /** How long to wait. Default: for ever. */
  readonly timeout?: Timeout | undefined;
}

/** Null only if there is a timeout. */
type Received<Payload, Timeout> =
  | (unknown extends Payload ? Json : Jsonify<Payload>)
  | (Timeout extends Duration ? null : never);

/** One signature and no overloads, so that each mistake is an error of its own argument. Without `event`, the name is that of a signal. */
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

/** The steps of a workflow. Each name may be used once in a run: in a loop, put the index into it. */
export interface WorkflowSteps<Signals extends SignalMap = SignalMap> {
  /** Calls the function, once it is recorded never again, and gives its result. Throws `StepFailed` when its attempts are used up. */
  readonly run: <Result>(
    name: string,
    fn: ((step: StepRun) => Result | Promise<Result>) &
      ((step: StepRun) => JsonSafe<NoInfer<Result>> | Promise<JsonSafe<NoInfer<Result>>>),
    options?: StepOptions,
  ) => Promise<Jsonify<Result>>;
  /** Waits for this long, or until this time. */
  readonly sleep: (name: string, until: Duration | Date) => Promise<void>;
  /** Waits for a signal and gives its payload, or null once the timeout has passed. */
  readonly waitForEvent: WaitForEvent<Signals>;
  /** Starts a run and gives its result when it has ended. Throws `ChildFailed`. */
  readonly invoke: <Target extends StartTarget>(
    name: string,
    target: Target,
    ...rest: InvokeArguments<InputOf<DefinitionOf<Target>>>
  ) => Promise<OutputOf<DefinitionOf<Target>>>;
  /** Runs SQL in the very transaction that records the step: its effects happen exactly once. Throws `StepFailed`. */
  readonly transaction: <Result>(
    name: string,
    fn: ((tx: Transaction, step: StepRun) => Promise<Result>) &
      ((tx: Transaction, step: StepRun) => Promise<JsonSafe<NoInfer<Result>>>),
    options?: StepOptions,
  ) => Promise<Jsonify<Result>>;
}
