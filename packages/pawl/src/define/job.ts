/**
 * `job`: one function that runs to completion, with retries. After an error or a crash the engine
 * runs the whole function again, until it returns, throws `NonRetryable` or has used up its
 * attempts. Crashes count as attempts. Called by users; returns the frozen definition that the
 * engine reads.
 */

import { defaultBackoff } from "./backoff.js";
import {
  type BatchContext,
  type BatchOptions,
  checkBatch,
  type GivenTo,
  type InputIn,
  type JsonReturned,
  type ResultIn,
  type ReturnedFor,
  type UnknownIn,
} from "./batch.js";
import type { JobContext } from "./context.js";
import { type Job, type JobDefinition, makeDefinition } from "./definition.js";
import { checkDefinition, type DefinitionOptions } from "./definition-options.js";
import type { Duration } from "../values/duration.js";
import type { Jsonify } from "../values/json-types.js";
import { checkFunction, checkInteger } from "../values/options.js";
import { checkSchema, type Schema } from "./schema.js";
import type { SignalMap } from "./signal.js";

/** The options of `job`. */
export interface JobOptions<
  Name extends string,
  Input,
  Parsed,
  Result,
  Accepted,
  Output,
  Signals,
  Batch,
  Given,
> extends DefinitionOptions<Name, Signals> {
  /**
   * The schema of the input. Without it, annotate the type in `run`; Pawl then checks nothing.
   * `run` gets JSON: a `Date` only if the schema makes one from a string.
   */
  readonly input?: (Schema<Input, Parsed> & Schema<unknown, InputIn<Batch, NoInfer<Given>>>) | undefined;
  /** The schema of the result. */
  readonly output?: Schema<Accepted, Output> | undefined;
  /**
   * Call `run` with many runs at once: `run(ctx, items)`. It returns one result for all items, or
   * an array with one result or `ctx.fail(error)` for each item, in their order. An array always
   * means one outcome for each item. If `run` throws, every item is retried on its own.
   */
  readonly batch?: (Batch & UnknownIn<Batch>) | undefined;
  readonly run: (ctx: ContextOf<Batch>, given: Given) => Result | Promise<Result>;
  /** The number of attempts, including the first. Default 20. */
  readonly maxAttempts?: number | undefined;
  /**
   * The wait after a failed attempt, counted from 0. Default: 1 s, doubled each time, at most 5
   * min.
   */
  readonly backoff?: ((attempt: number) => Duration) | undefined;
}

/** The first argument of `run`. */
type ContextOf<Batch> = Batch extends BatchOptions ? BatchContext : JobContext;

/** A result that JSON cannot represent is a compile error at `run`. */
interface ReturnsJson<Batch, Result> {
  readonly run: (...given: never) => JsonReturned<Batch, Result> | Promise<JsonReturned<Batch, Result>>;
}

/** Defines a job. */
export function job<
  const Name extends string,
  Result extends ReturnedFor<Batch, Accepted>,
  Input = unknown,
  Parsed = unknown,
  Accepted = unknown,
  Batch extends BatchOptions | undefined = undefined,
  Given = GivenTo<Batch, Parsed>,
  Output = ResultIn<Batch, Result>,
  Signals extends SignalMap = SignalMap,
>(
  options: JobOptions<Name, Input, Parsed, Result, Accepted, Output, Signals, Batch, Given> &
    ReturnsJson<Batch, NoInfer<Result>>,
): Job<Name, unknown extends Input ? InputIn<Batch, Given> : Input, Jsonify<Output>, Signals>;
export function job(options: unknown): JobDefinition {
  const { base, own } = checkDefinition("job", options, [
    "input",
    "output",
    "batch",
    "run",
    "maxAttempts",
    "backoff",
  ]);
  const { input, output, batch, maxAttempts = 20, backoff = defaultBackoff } = own;
  const run = checkFunction(own.run, "run");
  return makeDefinition({
    ...base,
    maxAttempts: checkInteger(maxAttempts, "maxAttempts", { min: 1, max: 1_000_000 }),
    backoff: checkFunction(backoff, "backoff"),
    input: checkSchema(input, "input"),
    output: checkSchema(output, "output"),
    batch: checkBatch(batch, run),
    run,
  });
}
