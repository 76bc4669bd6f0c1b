/**
 * The outcomes that a step can return. They are plain data that the helpers of `ctx` make. The
 * helpers use no `this`, so they work when destructured and cost nothing per step. The executor
 * calls `checkOutcome` on the value that a step or `handle` returned. A wrong value is an error of
 * that step, never a stuck run.
 */

import type { Child } from "./child.js";
import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption, InvalidOutcome } from "../values/errors.js";
import { hasBrand } from "../values/brand.js";
import {
  checkAwaitOptions,
  checkChildren,
  checkNames,
  checkNextOptions,
  checkState,
  checkStep,
  type StepNames,
} from "./outcome-checks.js";
import type { ConcurrencyLimit, RateLimit } from "./rate-limit.js";
import { show } from "../values/show.js";

// The brand of outcomes that `ctx` made, see `values/brand.ts`.
const made: unique symbol = Symbol("pawl.outcome");

interface Made {
  readonly [made]: true;
}

/** The options of `ctx.next`. */
export interface NextOptions {
  /** Lower runs first. Default: unchanged. */
  readonly priority?: number | undefined;
  /** Runs that share a key execute one at a time. Default: unchanged; null removes the key. */
  readonly partitionKey?: string | null | undefined;
  /**
   * The rate limit of this step and its retries: a name, or `{ name, key }` for a bucket per key.
   */
  readonly rateLimit?: RateLimit | undefined;
  /** How many tokens each attempt takes. Default 1. */
  readonly weight?: number | undefined;
  /**
   * The run holds a slot of this concurrency limit while it executes: a name, or `{ name, key }` for
   * slots per key. Default: unchanged; null: no limit from here on.
   */
  readonly concurrency?: ConcurrencyLimit | null | undefined;
}

/** The options of `ctx.awaitSignal`. */
export interface AwaitOptions<Match extends object = object> {
  /** Continue after this long without a signal. Default: wait forever. */
  readonly timeout?: Duration | undefined;
  /** Match only signals whose payload contains these members. Default: any payload. */
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

/** The run fails for a reason that the step gives. */
export interface Stop extends Made {
  readonly kind: "stop";
  readonly reason: unknown;
}

export type Outcome<Result = unknown> = Next | Retry | AwaitSignal | Spawn | Done<Result> | Stop;

const noOptions: NextOptions & AwaitOptions = Object.freeze({});

/** The helpers of `ctx`. The types of a definition narrow their arguments. */
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

/** Checks the value that a step or `handle` returned. `who` names it in errors. */
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
  return hasBrand(value, made);
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
  const allowed = "a step must return ctx.next, ctx.retry, ctx.awaitSignal, ctx.spawn, ctx.done or ctx.stop";
  if (returned === undefined) return `undefined; did you forget "return"? ${allowed}`;
  if (typeof returned === "function") return `${show(returned)}; did you forget to call it? ${allowed}`;
  return `${show(returned)}; ${allowed}`;
}
