/**
 * The retry policy of a workflow step: number of attempts and backoff. Users pass it with the step;
 * `checkRetries` checks it at the call. The engine keeps the counter and the due time in the
 * database.
 */

import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import { checkInteger, checkOneOf, checkOptions } from "../values/options.js";
import { show } from "../values/show.js";

/** How long to wait before the next attempt. */
export interface Backoff {
  /** "fixed": always `base`; "linear": grows by `base`; "exp": doubles each time. Default "exp". */
  readonly kind?: "fixed" | "linear" | "exp" | undefined;
  /** The first wait. Default "1s". */
  readonly base?: Duration | undefined;
  /** The longest wait. Default "60s". */
  readonly max?: Duration | undefined;
  /**
   * The random part of each wait, 0 to 1, so that many retries do not come at once. Default 0.2.
   */
  readonly jitter?: number | undefined;
}

/** The option `retry` of a step. */
export interface Retries {
  /** The number of attempts, including the first. Default 3. */
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

/** Checks a `retry`. `of` names its step in errors: `step "charge"`. */
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

/** The wait after a failed attempt, counted from 0. `chance` is a random number from 0 to 1. */
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
