/**
 * What a run can be started with besides its input. Types only, because `start` and `child` take the same; checked
 * where a run is made of them.
 */

import type { Duration } from "../values/duration.js";
import type { Phase } from "../values/phase.js";
import type { RateLimit } from "./rate-limit.js";

/** The options of `start` and `child`. */
export interface StartOptions {
  /** Default: the queue of the definition. */
  readonly queue?: string | undefined;
  /** Lower runs first. Default: the priority of the definition. */
  readonly priority?: number | undefined;
  /** Runs that share a key never execute at the same time. At most 512 bytes. */
  readonly partitionKey?: string | undefined;
  /** The limit that the first step falls under, with its retries: a name, or `{ name, key }` for a bucket per key. */
  readonly rateLimit?: RateLimit | undefined;
  /** How many tokens of that limit each try takes. Default 1. */
  readonly weight?: number | undefined;
  /** Run it not before this much time has passed. */
  readonly delay?: Duration | undefined;
  /** Run it not before this time. */
  readonly at?: Date | string | undefined;
  /** While a run with this key is in its unique scope, starting another returns that one. At most 512 bytes. */
  readonly uniqueKey?: string | Uint8Array | undefined;
  /** The phases in which the unique key is taken. Default: all that are not terminal. */
  readonly uniqueScope?: readonly Phase[] | undefined;
  /** The same key of the same definition name never starts a second run, until the first is swept. */
  readonly idempotencyKey?: string | undefined;
  /** How long to keep the run once it is terminal. Default: the retention of the definition. */
  readonly retention?: Duration | undefined;
  /** Machines: begin at this step. */
  readonly step?: string | undefined;
  /** Starts by name: this version. Default: the highest that a live worker serves, else the highest registered. */
  readonly version?: number | undefined;
}

/** What `start` and `child` take after the definition: the input may be left out where nothing is expected. */
export type StartArguments<Input> = undefined extends Input
  ? [input?: Input, options?: StartOptions]
  : [input: Input, options?: StartOptions];
