/**
 * How often a step of a workflow is tried, and how long it waits in between. Given with the step, checked at the
 * call, so that a mistake fails where it was written. Used by the engine, which keeps the counter and the due time in the database.
 */

import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import { checkInteger, checkOneOf, checkOptions } from "../values/options.js";
import { show } from "../values/show.js";

/** How long to wait before the next try. */
export interface Backoff {
  /** The same each time, growing by `base`, or doubled each time. Default "exp". */
  readonly kind?: "fixed" | "linear" | "exp" | undefined;
  /** The first wait. Default "1s". */
  readonly base?: Duration | undefined;
  /** The longest wait. Default "60s". */
  readonly max?: Duration | undefined;
  /** The part of each wait that is left to chance, so that many do not come back at once: 0 to 1. Default 0.2. */
  readonly jitter?: number | undefined;
}

/** The option `retry` of a step. */
export interface Retries {
  /** How often it is tried in all. Default 3. */
  readonly attempts?: number | undefined;
  readonly backoff?: Backoff | undefined;
}

/** A checked `retry`. */
export interface RetryPolicy {
  readonly attempts: number;
  readonly kind: "fixed" | "linear" | "exp";
  readonly baseMs: number;
  readonly maxMs: number;
  readonly jitter: number;
}

const usual: RetryPolicy = { attempts: 3, kind: "exp", baseMs: 1_000, maxMs: 60_000, jitter: 0.2 };

/** `of` says whose it is: `step "charge"`. */
export function checkRetries(given: unknown, of: string): RetryPolicy {
  if (given === undefined) return usual;
  if (typeof given === "number") {
    throw new InvalidOption(
      `the retry of ${of} must be an object such as { attempts: ${given} }, not a number`,
    );
  }
  const { attempts, backoff } = checkOptions(given, ["attempts", "backoff"], `the retry of ${of}`);
  const names = ["kind", "base", "max", "jitter"] as const;
  const { kind, base, max, jitter } = checkOptions(backoff ?? {}, names, `the backoff of ${of}`);
  const baseMs = base === undefined ? usual.baseMs : toMilliseconds(base, `the base of ${of}`);
  return {
    attempts:
      attempts === undefined
        ? usual.attempts
        : checkInteger(attempts, `the attempts of ${of}`, { min: 1, max: 1_000_000 }),
    kind:
      kind === undefined
        ? usual.kind
        : checkOneOf(kind, `the kind of backoff of ${of}`, ["fixed", "linear", "exp"]),
    baseMs,
    maxMs: max === undefined ? Math.max(usual.maxMs, baseMs) : toMilliseconds(max, `the max of ${of}`),
    jitter: jitter === undefined ? usual.jitter : checkJitter(jitter, of),
  };
}

/** How long to wait after the attempt that failed, counted from 0. `chance` is a number from 0 to 1. */
export function backoffMs(
  { kind, baseMs, maxMs, jitter }: RetryPolicy,
  attempt: number,
  chance: number,
): number {
  const factor = kind === "fixed" ? 1 : kind === "linear" ? attempt + 1 : 2 ** Math.min(attempt, 60);
  return Math.round(Math.min(baseMs * factor, maxMs) * (1 - jitter + jitter * chance));
}

function checkJitter(value: unknown, of: string): number {
  if (typeof value === "number" && value >= 0 && value <= 1) return value;
  throw new InvalidOption(`the jitter of ${of} must be a number from 0 to 1, not ${show(value)}`);
}
