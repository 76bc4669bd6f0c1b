/**
 * `workflow`: an ordinary async function whose steps are recorded. Pawl commits the outcome of each
 * `ctx.step.*` before the function continues. After a crash or a long wait the engine runs the
 * function again from the top, and recorded steps return their stored results. Called by users;
 * returns the frozen definition that the engine reads.
 */

import { makeDefinition, type Workflow, type WorkflowDefinition } from "./definition.js";
import { checkDefinition, type DefinitionOptions } from "./definition-options.js";
import type { Jsonify, JsonSafe } from "../values/json-types.js";
import { checkFunction } from "../values/options.js";
import { checkSchema, type Schema } from "./schema.js";
import type { SignalMap } from "./signal.js";
import type { WorkflowContext } from "./workflow-context.js";

/** The options of `workflow`. */
export interface WorkflowOptions<
  Name extends string,
  Input,
  Parsed,
  Result,
  Accepted,
  Output,
  Signals extends SignalMap,
> extends DefinitionOptions<Name, Signals> {
  /**
   * The schema of the input. Without it, annotate the type in `run`; Pawl then checks nothing.
   * `run` gets JSON: a `Date` only if the schema makes one from a string.
   */
  readonly input?: Schema<Input, Parsed> | undefined;
  /** The schema of the result. */
  readonly output?: Schema<Accepted, Output> | undefined;
  readonly run: (ctx: WorkflowContext<NoInfer<Signals>>, input: Parsed) => Promise<Result>;
}

/** A result that JSON cannot represent is a compile error at `run`. */
interface ReturnsJson<Result> {
  readonly run: (...given: never) => Promise<JsonSafe<Result>>;
}

const defaultMaxCrashes = 10;

/** Defines a workflow. */
export function workflow<
  const Name extends string,
  Result extends Accepted,
  Input = unknown,
  Parsed = unknown,
  Accepted = unknown,
  Output = Result,
  Signals extends SignalMap = SignalMap,
>(
  options: WorkflowOptions<Name, Input, Parsed, Result, Accepted, Output, Signals> &
    ReturnsJson<NoInfer<Result>>,
): Workflow<Name, unknown extends Input ? Parsed : Input, Jsonify<Output>, Signals>;
export function workflow(options: unknown): WorkflowDefinition {
  const { base, own } = checkDefinition("workflow", options, ["input", "output", "run"]);
  return makeDefinition({
    ...base,
    maxCrashes: base.maxCrashes ?? defaultMaxCrashes,
    input: checkSchema(own.input, "input"),
    output: checkSchema(own.output, "output"),
    run: checkFunction(own.run, "run"),
  });
}
