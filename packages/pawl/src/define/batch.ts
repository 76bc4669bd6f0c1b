/**
 * Batch jobs: the options, the items and the `ctx` of a job that is called with many runs at once.
 * The types say which input and which result a run has. `BatchFailure` is the outcome of one item
 * that failed. Used by `job`, and by `run/execute-batch.ts`, which calls the code.
 */

import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import type { JsonSafe } from "../values/json-types.js";
import type { Logger } from "../values/logger.js";
import { checkInteger, checkOptions } from "../values/options.js";
import { show } from "../values/show.js";

const maxSize = 10_000;
/** The worker holds the claims of a batch that it collects, so that no other worker runs them. */
const longestWaitMs = 60_000;
const defaultWait = "1s";

/** The option `batch` of `job`. */
export interface BatchOptions {
  /** The largest number of runs in one call of `run`, from 1 to 10,000. */
  readonly size: number;
  /**
   * How long a worker waits for more runs before it calls `run` with fewer, at most "1m". Default
   * "1s". 0: only the runs that are due right now.
   */
  readonly wait?: Duration | undefined;
}

/** The checked option, with the code of the job. */
export interface Batching {
  readonly size: number;
  readonly waitMs: number;
  readonly run: (ctx: BatchContext, items: readonly BatchItem[]) => unknown;
}

/** One run of a batch. */
export interface BatchItem<Input = unknown> {
  readonly runId: string;
  readonly input: Input;
  /** The number of attempts of this run before this one: 0 at first. */
  readonly attempt: number;
  /** Aborted when this run is cancelled. Its result is not recorded. */
  readonly signal: AbortSignal;
}

/** The first argument of `run` of a batch job. */
export interface BatchContext {
  /** The name and version of the definition. */
  readonly name: string;
  readonly version: number;
  /**
   * Aborted when no result of this call can be recorded any more, or the worker stops. To see that
   * one run was cancelled, use the `signal` of its item.
   */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /**
   * Makes the outcome of an item whose attempt failed: return it at the place of the item. The run
   * is retried as if its job had thrown this error. `NonRetryable` fails it at once.
   */
  readonly fail: (error: unknown) => BatchFailure;
}

declare const failure: unique symbol;

/** The outcome of one item that failed, made by `ctx.fail(error)`. */
export interface BatchFailure {
  readonly [failure]: true;
}

/** The argument of `run` after `ctx`. */
export type GivenTo<Batch, Parsed> = Batch extends BatchOptions ? readonly BatchItem<Parsed>[] : Parsed;

/** The input of one run, by that argument. */
export type InputIn<Batch, Given> = Batch extends BatchOptions
  ? Given extends readonly BatchItem<infer Input>[]
    ? Input
    : never
  : Given;

/** The result of one run: of its place in an array, or the one result of all. */
export type ResultIn<Batch, Returned> = Batch extends BatchOptions
  ? Exclude<Returned extends readonly (infer One)[] ? One : Returned, BatchFailure>
  : Returned;

/** The return value of `run`: each run gets a result that the schema accepts. */
export type ReturnedFor<Batch, Accepted> = Batch extends BatchOptions
  ? Accepted | BatchFailure | readonly (Accepted | BatchFailure)[]
  : Accepted;

/** The same, with `never` in place of results that JSON cannot represent. */
export type JsonReturned<Batch, Returned> = Batch extends BatchOptions
  ? Returned extends readonly (infer One)[]
    ? readonly (JsonSafe<Exclude<One, BatchFailure>> | BatchFailure)[]
    : JsonSafe<Exclude<Returned, BatchFailure>> | BatchFailure
  : JsonSafe<Returned>;

/** Options that `batch` does not have. */
export type UnknownIn<Batch> = { readonly [K in Exclude<keyof Batch, keyof BatchOptions>]: never };

/** Checks the option `batch` of a job with this code; null if there is none. */
export function checkBatch(given: unknown, run: Batching["run"]): Batching | null {
  if (given === undefined) return null;
  const { size, wait = defaultWait } = checkOptions(given, ["size", "wait"], "the option batch");
  const waitMs = toMilliseconds(wait, "batch.wait");
  if (waitMs > longestWaitMs) {
    throw new InvalidOption(
      `batch.wait must be at most 1 minute, not ${show(wait)}: the worker holds the runs of a batch while it waits for more`,
    );
  }
  return { size: checkInteger(size, "batch.size", { min: 1, max: maxSize }), waitMs, run };
}
