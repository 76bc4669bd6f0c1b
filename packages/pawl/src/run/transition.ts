/**
 * Decides what an outcome, or an error, makes of a run. Pure: no clock, no database, no user code
 * but what encoding touches. The functions that execute a run call it and hand the transition to
 * `commit.ts`. Values that JSON cannot hold throw here, so that the error belongs to the step that
 * returned them.
 */

import type { JobDefinition } from "../define/definition.js";
import { toMilliseconds } from "../values/duration.js";
import { describeBoth, describeError, describeStop, isA } from "../values/error-record.js";
import { NonRetryable, NotSerializable, PayloadTooLarge, TooManyCrashes } from "../values/errors.js";
import { type Encoded, toJson } from "../values/json.js";
import { awaitedNames, type Next, type Outcome } from "../define/outcome.js";
import { checkConcurrency, checkRateLimit } from "../define/rate-limit.js";
import type { NewRun, Transition } from "../store/store.js";
import { limitColumns } from "./new-run.js";

/** The step that returned, and what it saw. */
export interface Situation {
  readonly step: string;
  /** The text of the state as this claim stored it; null if it has stored none yet. */
  readonly storedState: string | null;
  /** The seqs of the signals that the step sees as awaited. */
  readonly awaited: readonly number[];
  /** How long a state or result may be as JSON. */
  readonly maxBytes: number;
  /**
   * Whether the claim may be kept, so that the next step runs at once; asked when the step has
   * returned.
   */
  readonly mayKeep: () => boolean;
}

export interface Decision {
  readonly transition: Transition;
  /** The new state, when the claim is kept. */
  readonly state: Encoded | null;
  /** A suspended workflow: how long until its first wait is due; null: no wait has a time. */
  readonly dueMs?: number | null;
  /** The value that was thrown, for listeners, if the attempt or the run failed. */
  readonly thrown?: unknown;
}

/** The transition of a machine's outcome. `children` are the runs that a spawn starts. */
export function decide(at: Situation, outcome: Outcome, children: readonly NewRun[] = []): Decision {
  switch (outcome.kind) {
    case "next":
      return decideNext(at, outcome);
    case "retry": {
      const delayMs = toMilliseconds(outcome.delay, "delay");
      return end({ kind: "retry", step: at.step, state: changed(at, outcome.state), delayMs, error: null });
    }
    case "await": {
      const { timeout, match } = outcome.options;
      return end({
        kind: "await",
        step: outcome.step,
        state: changed(at, outcome.state),
        names: awaitedNames(outcome),
        match: match === undefined ? null : toJson(match, "match", at.maxBytes).text,
        delayMs: timeout === undefined ? null : toMilliseconds(timeout, "timeout"),
        shown: at.awaited,
      });
    }
    case "spawn":
      return end({
        kind: "spawn",
        step: outcome.step,
        state: changed(at, outcome.state),
        children,
        consumed: at.awaited,
      });
    case "done":
      return end({ kind: "done", step: at.step, result: toJson(outcome.result, "result", at.maxBytes).text });
    case "stop":
      return fail(at.step, describeStop(outcome.reason, at.step), outcome.reason);
  }
}

function decideNext(at: Situation, { step, state: given, options }: Next): Decision {
  const state = toJson(given, "state", at.maxBytes);
  const text = state.text === at.storedState ? null : state.text;
  const { priority, partitionKey, rateLimit, weight, concurrency } = options;
  const isFree =
    priority === undefined &&
    partitionKey === undefined &&
    rateLimit === undefined &&
    concurrency === undefined;
  if (isFree && at.mayKeep()) {
    return { transition: { kind: "keep", step, state: text, consumed: at.awaited }, state };
  }
  return end({
    kind: "next",
    step,
    state: text,
    priority: priority ?? null,
    partitionKey,
    ...limitColumns(checkRateLimit(rateLimit, weight)),
    concurrency: concurrency == null ? concurrency : checkConcurrency(concurrency),
    consumed: at.awaited,
  });
}

/** The text of a new state; null if it is stored already. */
function changed(at: Situation, given: unknown): string | null {
  const { text } = toJson(given, "state", at.maxBytes);
  return text === at.storedState ? null : text;
}

/** The transition of the result of a job. */
export function decideResult(result: unknown, maxBytes: number): Decision {
  return end({ kind: "done", step: null, result: toJson(result, "result", maxBytes).text });
}

/**
 * The transition of an error that a job threw: another attempt after its backoff, until the last.
 */
export function decideJobError(definition: JobDefinition, attempt: number, error: unknown): Decision {
  if (isA(error, NonRetryable) || attempt + 1 >= definition.maxAttempts) return decideFailure(null, error);
  let delayMs: number;
  try {
    delayMs = toMilliseconds(definition.backoff(attempt), "backoff");
  } catch (backoffError) {
    return decideUnhandled(null, backoffError, error);
  }
  const record = JSON.stringify(describeError(error));
  const transition = { kind: "retry", step: null, state: null, delayMs, error: record } as const;
  return { ...end(transition), thrown: error };
}

/** A run that fails by an error nobody handled. */
export function decideFailure(step: string | null, error: unknown): Decision {
  return fail(step, describeError(error, step ?? undefined), error);
}

/** The error of a run that crashed too often to be tried again, or null. */
export function crashLimit(
  definition: { readonly kind: string; readonly maxCrashes: number | null; readonly maxAttempts?: number },
  run: { readonly attempt: number; readonly crashes: number },
): TooManyCrashes | null {
  const { maxCrashes, maxAttempts } = definition;
  if (maxCrashes !== null && run.crashes > maxCrashes) {
    return new TooManyCrashes(
      `${run.crashes} crashes without progress, at most ${maxCrashes} are allowed (maxCrashes)`,
    );
  }
  if (maxAttempts !== undefined && run.attempt >= maxAttempts) {
    return new TooManyCrashes(
      `the worker died during attempt ${run.attempt}, the last of ${maxAttempts} (maxAttempts)`,
    );
  }
  return null;
}

/** A run that fails because handling its error failed too: both errors are recorded. */
export function decideUnhandled(step: string | null, later: unknown, earlier: unknown): Decision {
  return fail(step, describeBoth(later, earlier, step ?? undefined), later);
}

/** The decision of a machine's `handle` about an error. A retry records the error. */
export function decideHandled(decision: Decision, step: string, error: unknown): Decision {
  const { transition } = decision;
  if (transition.kind !== "retry") return decision;
  const record = JSON.stringify(describeError(error, step));
  return { ...decision, transition: { ...transition, error: record }, thrown: error };
}

function fail(step: string | null, record: ReturnType<typeof describeError>, thrown: unknown): Decision {
  return { ...end({ kind: "stop", step, error: JSON.stringify(record) }), thrown };
}

function end(transition: Transition): Decision {
  return { transition, state: null };
}

/** Errors that another attempt would not change. */
export function isNotRetryable(error: unknown): boolean {
  return isA(error, NonRetryable) || isA(error, NotSerializable) || isA(error, PayloadTooLarge);
}
