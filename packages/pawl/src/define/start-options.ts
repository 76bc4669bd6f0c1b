/**
 * The options of `start` and `child`. Types only; `run/new-run.ts` checks them when it makes the
 * run.
 */

import type { Duration } from "../values/duration.js";
import type { Phase } from "../values/phase.js";
import type { ConcurrencyLimit, RateLimit } from "./rate-limit.js";

/** The options of `start` and `child`. */
export interface StartOptions {
  /** Default: the queue of the definition. */
  readonly queue?: string | undefined;
  /** Lower runs first. Default: the priority of the definition. */
  readonly priority?: number | undefined;
  /** Runs that share a key execute one at a time, in order. At most 512 bytes. */
  readonly partitionKey?: string | undefined;
  /**
   * The rate limit of the first step and its retries: a name, or `{ name, key }` for a bucket per
   * key.
   */
  readonly rateLimit?: RateLimit | undefined;
  /** How many tokens each attempt takes. Default 1. */
  readonly weight?: number | undefined;
  /**
   * The concurrency limit of the run: a name, or `{ name, key }` for a limit per key. The run holds
   * a slot while it executes.
   */
  readonly concurrency?: ConcurrencyLimit | undefined;
  /** Wait this long before the run begins. */
  readonly delay?: Duration | undefined;
  /** Do not begin before this time. */
  readonly at?: Date | string | undefined;
  /**
   * While a run with this key is in its unique scope, `start` returns that run. At most 512 bytes.
   */
  readonly uniqueKey?: string | Uint8Array | undefined;
  /** The phases in which the run holds its unique key. Default: all that are not terminal. */
  readonly uniqueScope?: readonly Phase[] | undefined;
  /** Per definition name, a key starts one run only, until retention deletes that run. */
  readonly idempotencyKey?: string | undefined;
  /**
   * Replace the run of this key that has not begun: a later start gives it a new input and moves its
   * time. Not together with a unique or idempotency key, `delay` or `at`.
   */
  readonly debounce?: Debounce | undefined;
  /**
   * A business key such as `"order-42"` to signal and find the run by. Several runs may share it. At
   * most 512 bytes.
   */
  readonly correlationKey?: string | undefined;
  /**
   * Labels to list runs by, such as `{ customer: "42" }`: at most 16, values of at most 256 bytes.
   * Default for a child: the tags of its parent.
   */
  readonly tags?: Tags | undefined;
  /**
   * Fail the run with `DeadlineExceeded` if it has not ended this long after it could begin. Default:
   * the timeout of the definition.
   */
  readonly timeout?: Duration | undefined;
  /** How long to keep the run after its end. Default: the retention of the definition. */
  readonly retention?: Duration | undefined;
  /** Machines: begin at this step. */
  readonly step?: string | undefined;
  /**
   * For a start by name. Default: the highest version that a live worker serves, else the highest
   * registered.
   */
  readonly version?: number | undefined;
}

/** The labels of a run: names with texts. */
export type Tags = Readonly<Record<string, string>>;

/** How a start replaces an earlier one that has not begun. */
export interface Debounce {
  /** Per definition name. At most 512 bytes. */
  readonly key: string;
  /** The run begins this long after the last start. */
  readonly delay: Duration;
  /** But at the latest this long after the first start. Default: no limit. */
  readonly maxDelay?: Duration | undefined;
}

/**
 * The arguments of `start` and `child` after the definition. The input is optional if it may be
 * undefined.
 */
export type StartArguments<Input> = undefined extends Input
  ? [input?: Input, options?: StartOptions]
  : [input: Input, options?: StartOptions];
