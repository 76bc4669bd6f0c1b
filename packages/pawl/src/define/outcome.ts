/**
 * What a step can return. Outcomes are plain data made by the helpers of `ctx`; they do nothing by themselves. The
 * helpers are functions of this module and use no `this`, so they work when destructured from `ctx` and cost
 * nothing per step. `checkOutcome` is called by the executor on whatever a step or `handle` returned: a wrong one is
 * an error of that step, with a message that shows it, and never a stuck run.
 */

import type { Child } from "./child.js";
import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption, InvalidOutcome } from "../values/errors.js";
import { isMarked } from "../values/mark.js";
import {
  checkAwaitOptions,
  checkChildren,
  checkNames,
  checkNextOptions,
  checkState,
  checkStep,
  type StepNames,
} from "./outcome-parts.js";
import type { RateLimit } from "./rate-limit.js";
import { show } from "../values/show.js";

// Tells an outcome made by `ctx` from an object that a user's step happens to return.
const made: unique symbol = Symbol("pawl.outcome");

interface Made {
  readonly [made]: true;
}

/** What `next` may change of the run. */
export interface NextOptions {
  /** Lower runs first; kept as it is if left out. */
  readonly priority?: number | undefined;
  /** Runs that share a key never execute at the same time; kept as it is if left out, dropped by null. */
  readonly partitionKey?: string | null | undefined;
  /** The limit that this step falls under, with its retries: a name, or `{ name, key }` for a bucket per key. */
  readonly rateLimit?: RateLimit | undefined;
  /** How many tokens of that limit each try takes. Default 1. */
  readonly weight?: number | undefined;
}

/** What a run waits for besides the names of signals. */
export interface AwaitOptions<Match extends object = object> {
  /** Go on after this long without a signal. Default: wait as long as it takes. */
  readonly timeout?: Duration | undefined;
  /** Only signals whose payload contains these members, with these values. Default: any payload. */
  readonly match?: Match | undefined;
}

/** Go to `step` with `state`. */
export interface Next extends Made {
  readonly kind: "next";
  readonly step: string;
  readonly state: unknown;
  readonly options: NextOptions;
}

/** The same step again, after `delay`, with `state`. */
export interface Retry extends Made {
  readonly kind: "retry";
  readonly state: unknown;
  readonly delay: Duration;
}

/** Go to `step` when a signal of one of these names arrives, or the timeout passes. */
export interface AwaitSignal extends Made {
  readonly kind: "await";
  readonly names: string | readonly string[];
  readonly step: string;
  readonly state: unknown;
  readonly options: AwaitOptions;
}

/** Start these runs and go to `step` when all of them have ended. */
export interface Spawn extends Made {
  readonly kind: "spawn";
  readonly step: string;
  readonly children: readonly Child[];
  readonly state: unknown;
}

/** The run is done. */
export interface Done<Result = unknown> extends Made {
  readonly kind: "done";
  readonly result: Result;
}

/** The run has failed, for a reason that the step knows. */
export interface Stop extends Made {
  readonly kind: "stop";
  readonly reason: unknown;
}

export type Outcome<Result = unknown> = Next | Retry | AwaitSignal | Spawn | Done<Result> | Stop;

const noOptions: NextOptions & AwaitOptions = Object.freeze({});

/** The helpers of `ctx`; the types of a definition narrow what they take. */
export const stepHelpers = Object.freeze({
  next: (step: string, state: unknown, options: NextOptions = noOptions): Next => ({
    [made]: true,
    kind: "next",
    step,
    state,
    options,
  }),
  retry: (state: unknown, delay: Duration): Retry => ({ [made]: true, kind: "retry", state, delay }),
  awaitSignal: (
    names: string | readonly string[],
    step: string,
    state: unknown,
    options: AwaitOptions = noOptions,
  ): AwaitSignal => ({ [made]: true, kind: "await", names, step, state, options }),
  spawn: (step: string, children: readonly Child[], state: unknown): Spawn => ({
    [made]: true,
    kind: "spawn",
    step,
    children,
    state,
  }),
  done: <Result = undefined>(result?: Result): Done<Result> => ({
    [made]: true,
    kind: "done",
    result: result as Result,
  }),
  stop: (reason: unknown): Stop => ({ [made]: true, kind: "stop", reason }),
});

/** The names of the signals that a run waits for, each once. */
export function awaitedNames({ names }: AwaitSignal): readonly string[] {
  return typeof names === "string" ? [names] : [...new Set(names)];
}

/** The outcome that `who` (a step, or handle) returned, if it is one that can be carried out. */
export function checkOutcome(returned: unknown, steps: StepNames, who: string): Outcome {
  if (!isOutcome(returned)) throw new InvalidOutcome(`${who} returned ${explain(returned)}`);
  try {
    checkParts(returned, steps);
  } catch (error) {
    if (!(error instanceof InvalidOption)) throw error;
    const helper = returned.kind === "await" ? "awaitSignal" : returned.kind;
    throw new InvalidOutcome(`${who} returned ${helper}(…): ${error.message}`);
  }
  return returned;
}

function isOutcome(value: unknown): value is Outcome {
  return isMarked(value, made);
}

function checkParts(outcome: Outcome, steps: StepNames): void {
  switch (outcome.kind) {
    case "next":
      checkStep(outcome.step, steps);
      checkState(outcome.state);
      if (outcome.options !== noOptions) checkNextOptions(outcome.options);
      return;
    case "retry":
      checkState(outcome.state);
      toMilliseconds(outcome.delay, "its delay");
      return;
    case "await":
      checkNames(outcome.names);
      checkStep(outcome.step, steps);
      checkState(outcome.state);
      if (outcome.options !== noOptions) checkAwaitOptions(outcome.options);
      return;
    case "spawn":
      checkStep(outcome.step, steps);
      checkChildren(outcome.children);
      checkState(outcome.state);
      return;
    case "done":
    case "stop":
      return;
    default:
      throw new InvalidOption(`there is no outcome of the kind ${show((outcome as Outcome).kind)}`);
  }
}

function explain(returned: unknown): string {
  const allowed =
    "a step returns what ctx.next, ctx.retry, ctx.awaitSignal, ctx.spawn, ctx.done or ctx.stop made";
  if (returned === undefined) return `undefined, perhaps for want of a "return"; ${allowed}`;
  if (typeof returned === "function") return `${show(returned)}, perhaps one that was not called; ${allowed}`;
  return `${show(returned)}; ${allowed}`;
}
