/**
 * Reads the input of jobs and workflows by their schema, and decides about their result. Answers a
 * promise only if the schema is asynchronous: most jobs have none.
 */

import type { JobDefinition, WorkflowDefinition } from "../define/definition.js";
import { fromJson } from "../values/json.js";
import { parse } from "../define/schema.js";
import type { Execution } from "./execution.js";
import type { WorkerServices } from "./worker-services.js";
import { type Decision, decideResult } from "./transition.js";

/** Throws `InvalidInput` if the schema refuses the stored input. */
export function readInput(
  { claim }: Execution,
  { input: schema }: JobDefinition | WorkflowDefinition,
): unknown {
  const stored = fromJson(claim.run.input ?? "null");
  return schema === undefined ? stored : parse(schema, stored, "InvalidInput", "input");
}

/** Throws if the schema refuses the result, or JSON cannot hold it. */
export function decideReturned(
  result: unknown,
  { output: schema }: JobDefinition | WorkflowDefinition,
  { maxPayloadBytes }: WorkerServices["limits"],
): Decision | Promise<Decision> {
  const checked = schema === undefined ? result : parse(schema, result, "InvalidOutcome", "result");
  return schema !== undefined && checked instanceof Promise
    ? checked.then((value: unknown) => decideResult(value, maxPayloadBytes))
    : decideResult(checked, maxPayloadBytes);
}
