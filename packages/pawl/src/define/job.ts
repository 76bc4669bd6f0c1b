/**
 * `job`: one function that runs to completion, with retries. After an error or a crash the engine
 * runs the whole function again, until it returns, throws `NonRetryable` or has used up its
 * attempts. Crashes count as attempts. Called by users; returns the frozen definition that the
 * engine reads.
 */

import { defaultBackoff } from "./backoff.js";
import type { JobContext } from "./context.js";
import { type Job, type JobDefinition, makeDefinition } from "./definition.js";
import { checkDefinition, type DefinitionOptions } from "./definition-options.js";
import type { Duration } from "../values/duration.js";
import type { Jsonify, JsonSafe } from "../values/json-types.js";
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
> extends DefinitionOptions<Name, Signals> {
  /**
   * The schema of the input. Without it, annotate the type in `run`; Pawl then checks nothing.
   * `run` gets JSON: a `Date` only if the schema makes one from a string.
   */
  readonly input?: Schema<Input, Parsed> | undefined;
  /** The schema of the result. */
  readonly output?: Schema<Accepted, Output> | undefined;
  readonly run: (ctx: JobContext, input: Parsed) => Result | Promise<Result>;
  /** The number of attempts, including the first. Default 20. */
  readonly maxAttempts?: number | undefined;
  /**
   * The wait after a failed attempt, counted from 0. Default: 1 s, doubled each time, at most 5
   * min.
   */
  readonly backoff?: ((attempt: number) => Duration) | undefined;
}

/** A result that JSON cannot represent is a compile error at `run`. */
interface ReturnsJson<Result> {
  readonly run: (...given: never) => JsonSafe<Result> | Promise<JsonSafe<Result>>;
}

/** Defines a job. */
export function job<
  const Name extends string,
  Result extends Accepted,
  Input = unknown,
  Parsed = unknown,
  Accepted = unknown,
  Output = Result,
  Signals extends SignalMap = SignalMap,
>(
  options: JobOptions<Name, Input, Parsed, Result, Accepted, Output, Signals> & ReturnsJson<NoInfer<Result>>,
): Job<Name, unknown extends Input ? Parsed : Input, Jsonify<Output>, Signals>;
export function job(options: unknown): JobDefinition {
  const { base, own } = checkDefinition("job", options, ["input", "output", "run", "maxAttempts", "backoff"]);
  const { input, output, run, maxAttempts = 20, backoff = defaultBackoff } = own;
  return makeDefinition({
    ...base,
    maxAttempts: checkInteger(maxAttempts, "maxAttempts", { min: 1, max: 1_000_000 }),
    backoff: checkFunction(backoff, "backoff"),
    input: checkSchema(input, "input"),
    output: checkSchema(output, "output"),
    run: checkFunction(run, "run"),
  });
}
