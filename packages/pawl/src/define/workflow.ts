/**
 * `workflow`: an ordinary async function whose steps are recorded. The outcome of each `ctx.step.*` is committed before
 * the function goes on. After a crash, or a wait that took it off its worker, it is run again from the top, and what is recorded is not done again but
 * given back. Called by users; gives the frozen definition that the engine consumes.
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
   * What the input must be. Without it, `run` says the type of its input itself and nothing is checked: a type of
   * JSON, since that is what it gets (a `Date` only with a schema that revives it).
   */
  readonly input?: Schema<Input, Parsed> | undefined;
  /** What the result must be. */
  readonly output?: Schema<Accepted, Output> | undefined;
  readonly run: (ctx: WorkflowContext<NoInfer<Signals>>, input: Parsed) => Promise<Result>;
}

/** Refuses, at compile time and at `run`, a result that JSON cannot carry. */
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
