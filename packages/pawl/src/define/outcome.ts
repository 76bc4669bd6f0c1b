/**
 * What a step can return. Outcomes are plain data made by the helpers of `ctx`; they do nothing by themselves. The
 * helpers are functions of this module and use no `this`, so they work when destructured from `ctx` and cost
 * nothing per step. `checkOutcome` is called by the executor on whatever a step or `handle` returned: a wrong one is
 * an error of that step, with a message that shows it, and never a stuck run.
 */

import { type Duration, toMilliseconds } from "./duration.js";
import { InvalidOption, InvalidOutcome } from "./errors.js";
import { checkInteger, checkOptions, suggest } from "./options.js";
import { shorten, show } from "./show.js";

// Tells an outcome made by `ctx` from an object that a user's step happens to return.
const made: unique symbol = Symbol("pawl.outcome");

interface Made {
  readonly [made]: true;
}

/** What `next` may change of the run. */
export interface NextOptions {
  /** Lower runs first; kept as it is if left out. */
  readonly priority?: number | undefined;
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

export type Outcome<Result = unknown> = Next | Retry | Done<Result> | Stop;

const noOptions: NextOptions = Object.freeze({});

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
  done: (result?: unknown): Done => ({ [made]: true, kind: "done", result }),
  stop: (reason: unknown): Stop => ({ [made]: true, kind: "stop", reason }),
});

/** The names of a machine's steps: a set of them, or the map of its steps. */
export interface StepNames {
  has(name: string): boolean;
  keys(): Iterable<string>;
}

/** The outcome that `who` (a step, or handle) returned, if it is one that can be carried out. */
export function checkOutcome(returned: unknown, steps: StepNames, who: string): Outcome {
  if (!isOutcome(returned)) throw new InvalidOutcome(`${who} returned ${explain(returned)}`);
  try {
    checkParts(returned, steps);
  } catch (error) {
    if (!(error instanceof InvalidOption)) throw error;
    throw new InvalidOutcome(`${who} returned ${returned.kind}(…): ${error.message}`);
  }
  return returned;
}

function isOutcome(value: unknown): value is Outcome {
  if (typeof value !== "object" || value === null) return false;
  try {
    return Reflect.get(value, made) === true;
  } catch {
    // A proxy of the user's, which is no outcome.
    return false;
  }
}

function checkParts(outcome: Outcome, steps: StepNames): void {
  switch (outcome.kind) {
    case "next":
      if (!steps.has(outcome.step)) throw new InvalidOption(unknownStep(outcome.step, steps));
      checkState(outcome.state);
      if (outcome.options !== noOptions) checkNextOptions(outcome.options);
      return;
    case "retry":
      checkState(outcome.state);
      toMilliseconds(outcome.delay, "its delay");
      return;
    case "done":
    case "stop":
      return;
    default:
      throw new InvalidOption(`there is no outcome of the kind ${show((outcome as Outcome).kind)}`);
  }
}

function checkState(state: unknown): void {
  if (state === undefined) throw new InvalidOption("its state is missing; pass ctx.state to keep it");
}

function checkNextOptions(given: unknown): void {
  const { priority } = checkOptions(given, ["priority"], "its options");
  if (priority !== undefined) checkInteger(priority, "priority", { min: -32_768, max: 32_767 });
}

function unknownStep(given: unknown, steps: StepNames): string {
  const names = [...steps.keys()];
  const meant = typeof given === "string" ? suggest(given, names) : "";
  return `there is no step ${show(given, 140)}; the steps are ${shorten(names.join(", "), 500)}${meant}`;
}

function explain(returned: unknown): string {
  const allowed = "a step returns what ctx.next, ctx.retry, ctx.done or ctx.stop made";
  if (returned === undefined) return `undefined, perhaps for want of a "return"; ${allowed}`;
  if (typeof returned === "function") return `${show(returned)}, perhaps one that was not called; ${allowed}`;
  return `${show(returned)}; ${allowed}`;
}
