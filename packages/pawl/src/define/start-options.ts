/**
 * The options of `start` and `child`. Types only; `run/new-run.ts` checks them when it makes the
 * run.
 */

import type { Duration } from "../values/duration.js";
import type { Phase } from "../values/phase.js";
import type { Concurrency, RateLimit } from "./rate-limit.js";

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
   * The run holds a slot of this concurrency limit while it executes: a name, or `{ name, key }` for
   * slots per key.
   */
  readonly concurrency?: Concurrency | undefined;
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

/**
 * The arguments of `start` and `child` after the definition. The input is optional if it may be
 * undefined.
 */
export type StartArguments<Input> = undefined extends Input
  ? [input?: Input, options?: StartOptions]
  : [input: Input, options?: StartOptions];
