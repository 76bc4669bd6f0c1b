/**
 * Schemas of states, inputs and outputs: anything that implements Standard Schema (zod, valibot, arktype and
 * others), or a TypeScript type alone. What a schema gives out is stored as JSON and parsed again on every load, so
 * a schema must accept its own output; `checkStable` says so at the first start instead of losing a run later.
 * Parsing stays synchronous when the schema is. Called by the definitions, the start of runs and the executor.
 */

import type { StandardSchemaV1 } from "@standard-schema/spec";

import { isA } from "../values/error-record.js";
import {
  InvalidInput,
  InvalidOption,
  InvalidOutcome,
  InvalidState,
  SchemaNotStable,
} from "../values/errors.js";
import { type Encoded, fromJson, toJson } from "../values/json.js";
import type { Encodable, JsonObject, Jsonify } from "../values/json-types.js";
import { pathSegment, shorten, show } from "../values/show.js";

/** A schema of any library. */
export type Schema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output>;

declare const uncheckedInput: unique symbol;

/** A type without a check at run time; the member that tells it from a schema exists only for the compiler. */
export interface Unchecked<Input, Output> extends Schema<Input, Output> {
  readonly [uncheckedInput]: Input;
}

const unchecked: Schema = Object.freeze({
  "~standard": Object.freeze({ version: 1, vendor: "pawl", validate: (value: unknown) => ({ value }) }),
});

/** A state or input that has a TypeScript type and is not checked at run time: `state: type<{ n: number }>()`. */
export function type<T extends JsonObject<T>>(): Unchecked<Encodable<T>, Jsonify<T>>;
export function type(): Schema {
  return unchecked;
}

/** The option of a definition that takes a schema; `undefined` where there is nothing to check at run time. */
export function checkSchema(value: unknown, what: string): Schema | undefined {
  if (value === undefined || value === unchecked) return undefined;
  if (isSchema(value)) return value;
  throw new InvalidOption(
    `${what} must be a schema that implements Standard Schema (zod 3.24 or later, valibot 1, arktype 2, …) ` +
      `or type<T>(), not ${show(value)}`,
  );
}

function isSchema(value: unknown): value is Schema {
  // The schemas of arktype are functions.
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard: unknown = Reflect.get(value, "~standard");
  return typeof standard === "object" && standard !== null && "validate" in standard;
}

const refusals = { InvalidInput, InvalidOutcome, InvalidState };

/** The value that the schema makes of `value`; a promise only if the schema is asynchronous. */
export function parse(schema: Schema, value: unknown, error: keyof typeof refusals, what: string): unknown {
  const refuse = (message: string, cause?: unknown) => {
    const options = cause === undefined ? undefined : { cause };
    return new refusals[error](message, options);
  };
  const accept = (result: StandardSchemaV1.Result<unknown>): unknown => {
    if (result.issues === undefined) return result.value;
    throw refuse(`${what} is not what its schema allows: ${describeIssues(what, result.issues)}`);
  };
  const threw = (cause: unknown) => refuse(`the schema of ${what} threw: ${show(cause)}`, cause);

  let result: ReturnType<Schema["~standard"]["validate"]>;
  try {
    result = schema["~standard"].validate(value);
  } catch (cause) {
    throw threw(cause);
  }
  if (!(result instanceof Promise)) return accept(result);
  return result.then(accept, (cause: unknown) => {
    throw threw(cause);
  });
}

/**
 * What is stored of `value`, once it is sure that the schema will accept it again and leave it as it is.
 * A refusal of `value` itself is `InvalidInput`.
 */
export function checkStable(
  schema: Schema,
  value: unknown,
  what: string,
  limitBytes?: number,
): Encoded | Promise<Encoded> {
  const parsed = parse(schema, value, "InvalidInput", what);
  return parsed instanceof Promise
    ? parsed.then((output: unknown) => checkOutput(schema, output, what, limitBytes))
    : checkOutput(schema, parsed, what, limitBytes);
}

function checkOutput(
  schema: Schema,
  output: unknown,
  what: string,
  limitBytes?: number,
): Encoded | Promise<Encoded> {
  const stored = toJson(output, what, limitBytes);
  const compare = (again: unknown): Encoded => {
    if (toJson(again, what, limitBytes).text === stored.text) return stored;
    throw unstable(what, `it made ${show(again)} of its own output ${show(stored.value)}`);
  };
  const refuse = (cause: unknown): never => {
    throw unstable(what, isA(cause, Error) ? cause.message : show(cause), cause);
  };
  let again: unknown;
  try {
    again = parse(schema, fromJson(stored.text), "InvalidState", what);
  } catch (cause) {
    return refuse(cause);
  }
  return again instanceof Promise ? again.then(compare, refuse) : compare(again);
}

function unstable(what: string, problem: string, cause?: unknown): SchemaNotStable {
  return new SchemaNotStable(
    `the schema of ${what} is not stable: its output is stored as JSON and parsed by it again on every load, ` +
      `and must come through unchanged, but ${problem}`,
    cause === undefined ? undefined : { cause },
  );
}

const shownIssues = 5;

function describeIssues(what: string, issues: readonly StandardSchemaV1.Issue[]): string {
  const shown = issues.slice(0, shownIssues).map(({ message, path = [] }) => {
    const keys = path.map((part) => (typeof part === "object" ? part.key : part));
    return `${what}${keys.map(pathSegment).join("")}: ${shorten(message, 300)}`;
  });
  if (issues.length > shown.length) shown.push(`and ${issues.length - shown.length} more`);
  return shown.join("; ");
}
