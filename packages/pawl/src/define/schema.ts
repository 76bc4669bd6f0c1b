/**
 * Schemas of states, inputs and outputs: any schema that implements Standard Schema (zod, valibot,
 * arktype and others), or a TypeScript type alone. Pawl stores the output of a schema as JSON and
 * parses it again on every load, so a schema must accept its own output. `checkStable` refuses an
 * unstable schema at the first start, before a run can fail. Parsing is synchronous if the schema
 * is. Called by the definitions, the start of runs and the executor.
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

/** A type without a check at run time. Its member exists only for the compiler. */
export interface Unchecked<Input, Output> extends Schema<Input, Output> {
  readonly [uncheckedInput]: Input;
}

const unchecked: Schema = Object.freeze({
  "~standard": Object.freeze({ version: 1, vendor: "pawl", validate: (value: unknown) => ({ value }) }),
});

/** A TypeScript type without a check at run time: `state: type<{ n: number }>()`. */
export function type<T extends JsonObject<T>>(): Unchecked<Encodable<T>, Jsonify<T>>;
export function type(): Schema {
  return unchecked;
}

/** Checks an option that takes a schema; `undefined` if there is nothing to check at run time. */
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

/** Parses `value` with the schema. Returns a promise only if the schema is asynchronous. */
export function parse(schema: Schema, value: unknown, error: keyof typeof refusals, what: string): unknown {
  const refuse = (message: string, cause?: unknown) => {
    const options = cause === undefined ? undefined : { cause };
    return new refusals[error](message, options);
  };
  const accept = (result: StandardSchemaV1.Result<unknown>): unknown => {
    if (result.issues === undefined) return result.value;
    throw refuse(`${what} does not match its schema: ${describeIssues(what, result.issues)}`);
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
 * Parses and encodes `value`, and checks that the schema accepts the result again unchanged. If the
 * schema refuses `value` itself, throws `InvalidInput`.
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
    throw unstable(what, `it returned ${show(again)} for its own output ${show(stored.value)}`);
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
    `the schema of ${what} is not stable: Pawl stores its output as JSON and parses it again on every load, ` +
      `so the schema must return its own output unchanged, but ${problem}`,
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
