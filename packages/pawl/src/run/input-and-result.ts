/**
 * What goes into and comes out of jobs and workflows: the input as their schema reads it, and the decision that their result is. A
 * promise only if the schema is asynchronous: most jobs have none.
 */

import type { JobDefinition, WorkflowDefinition } from "../define/definition.js";
import { fromJson } from "../values/json.js";
import { parse } from "../define/schema.js";
import type { Execution } from "./execution.js";
import type { Surroundings } from "./worker-services.js";
import { type Decision, decideResult } from "./transition.js";

/** Throws `InvalidInput` if the schema refuses what is stored. */
export function readInput(
  execution: Execution,
  { input: schema }: JobDefinition | WorkflowDefinition,
): unknown {
  const stored = fromJson(execution.input ?? "null");
  return schema === undefined ? stored : parse(schema, stored, "InvalidInput", "input");
}

/** Throws what the schema, or JSON, has against the result. */
export function decideReturned(
  result: unknown,
  { output: schema }: JobDefinition | WorkflowDefinition,
  { maxPayloadBytes }: Surroundings,
): Decision | Promise<Decision> {
  const checked = schema === undefined ? result : parse(schema, result, "InvalidOutcome", "result");
  return schema !== undefined && checked instanceof Promise
    ? checked.then((value: unknown) => decideResult(value, maxPayloadBytes))
    : decideResult(checked, maxPayloadBytes);
}
