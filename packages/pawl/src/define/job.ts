/**
 * `job`: one function that runs to completion, with retries. The unit of durability is the whole function: it is
 * run again from the start after an error or a crash, until it returns, throws `NonRetryable` or has used up its
 * attempts; crashes count as attempts. Called by users; gives the frozen definition that the engine consumes.
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
   * What the input must be. Without it, `run` says the type of its input itself and nothing is checked: a type of
   * JSON, since that is what it gets (a `Date` only with a schema that revives it).
   */
  readonly input?: Schema<Input, Parsed> | undefined;
  /** What the result must be. */
  readonly output?: Schema<Accepted, Output> | undefined;
  readonly run: (ctx: JobContext, input: Parsed) => Result | Promise<Result>;
  /** How often it is tried in all. Default 20. */
  readonly maxAttempts?: number | undefined;
  /** How long to wait after the attempt that failed, counted from 0. Default: 1 s, doubled each time, at most 5 min. */
  readonly backoff?: ((attempt: number) => Duration) | undefined;
}

/** Refuses, at compile time and at `run`, a result that JSON cannot carry. */
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
