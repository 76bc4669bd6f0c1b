/**
 * Checks requests against the schemas of their route. A body must have the right types ("5" is no
 * number); texts of a query are converted to the types of their schemas. An error says which field
 * is wrong, what was given and what is allowed. Used by `app.ts`.
 */

import type { FastifySchemaCompiler } from "fastify";
import { values } from "pawl/engine";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { RequestError } from "./problems.js";

const { isObject, show, suggest } = values;

/** The parts of a schema that error messages use. */
interface Described {
  readonly type?: string;
  readonly anyOf?: readonly Described[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Described>>;
  /** Of a union: the member whose value selects the schema. */
  readonly discriminator?: { readonly propertyName: string };
}

interface Mismatch {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: object;
}

export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart = "body" }) => {
  const compiled = Compile(schema);
  const read = httpPart === "querystring" ? textReader(schema) : (given: unknown) => given;
  return (given: unknown) => {
    const value = read(given);
    if (compiled.Check(value)) return { value };
    return { error: explain(schema, value, compiled.Errors(value), httpPart) };
  };
};

/** Converts members whose schema is a number or a boolean; leaves all others as they are. */
function textReader({ properties = {} }: Described): (given: unknown) => unknown {
  const wanted = Object.entries(properties).filter(([, { type = "" }]) => type !== "string");
  return (given) => {
    if (!isObject(given)) return given;
    const read = wanted.filter(([name]) => Object.hasOwn(given, name));
    return {
      ...given,
      ...Object.fromEntries(read.map(([name, { type }]) => [name, readText(type, given[name])])),
    };
  };
}

function readText(type: string | undefined, text: unknown): unknown {
  if (typeof text !== "string") return text;
  if ((type === "integer" || type === "number") && /^-?\d{1,17}(\.\d{1,17})?$/.test(text))
    return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

function explain(
  schema: Described,
  value: unknown,
  mismatches: readonly Mismatch[],
  part: string,
): RequestError {
  const where = part === "querystring" ? "query" : part;
  for (const mismatch of mismatches) {
    const found = findKinds(schema, mismatch);
    if (found === null) continue;
    const { union, path } = found;
    return explainKind(union, memberAt(value, path), [where, ...path].join("."));
  }
  const unknown = mismatches.find(({ keyword }) => keyword === "additionalProperties");
  if (unknown !== undefined) {
    const [name = ""] = (unknown.params as { additionalProperties: string[] }).additionalProperties;
    const known = Object.keys(at(schema, unknown.schemaPath)?.properties ?? {});
    const field = [where, ...steps(unknown.instancePath), name].join(".");
    const allowed = known.length === 0 ? "there are no fields" : `allowed: ${known.join(", ")}`;
    return refuse(`unknown field ${show(field, 80)}; ${allowed}${suggest(name, known)}`, field);
  }
  const missing = mismatches.find(({ keyword }) => keyword === "required");
  if (missing !== undefined) {
    const [name = ""] = (missing.params as { requiredProperties: string[] }).requiredProperties;
    const field = [where, ...steps(missing.instancePath), name].join(".");
    return refuse(
      `${field} is missing; it must be ${describe(at(schema, missing.schemaPath)?.properties?.[name])}`,
      field,
    );
  }
  const path = mismatches[0]?.instancePath ?? "";
  // The last mismatch of a value is about its whole schema, not about one alternative.
  const last = mismatches.findLast(({ instancePath }) => instancePath === path);
  const field = [where, ...steps(path)].join(".");
  const given = memberAt(value, steps(path));
  return refuse(
    `${field} must be ${describe(at(schema, last?.schemaPath ?? "#"))}, not ${show(given, 80)}`,
    field,
  );
}

/**
 * The first union with a discriminator on the path to the mismatch, and where its value is; null:
 * none.
 */
function findKinds(
  schema: Described,
  { schemaPath, instancePath }: Mismatch,
): { union: Described; path: string[] } | null {
  const path = steps(instancePath);
  let here: unknown = schema;
  let depth = 0;
  let isInside = false;
  for (const step of steps(schemaPath)) {
    if ((here as Described).discriminator !== undefined && !isInside)
      return { union: here as Described, path: path.slice(0, depth) };
    // The name of a member, or the index in a list, is a step in the value; `properties` itself is
    // not.
    if (isInside) depth++;
    else if (step === "items") depth++;
    isInside = !isInside && step === "properties";
    here = (here as Readonly<Record<string, unknown>>)[step];
    if (!isObject(here) && !Array.isArray(here)) return null;
  }
  return (here as Described).discriminator === undefined
    ? null
    : { union: here as Described, path: path.slice(0, depth) };
}

/** Explains a mismatch in a union: by the schema that the discriminator selects. */
function explainKind(union: Described, value: unknown, where: string): RequestError {
  const member = union.discriminator!.propertyName;
  if (!isObject(value)) return refuse(`${where} must be an object, not ${show(value, 80)}`, where);
  const kindOf = ({ properties }: Described): unknown => properties?.[member]?.const;
  const kinds = union.anyOf ?? [];
  const meant = kinds.find((kind) => kindOf(kind) === value[member]);
  const field = `${where}.${member}`;
  const allowed = `one of ${kinds.map(kindOf).join(", ")}`;
  if (!Object.hasOwn(value, member)) return refuse(`${field} is missing; it must be ${allowed}`, field);
  if (meant === undefined)
    return refuse(`${field} must be ${allowed}, not ${show(value[member], 80)}`, field);
  return explain(meant, value, Compile(meant as TSchema).Errors(value), where);
}

function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (member, step) => (member as Readonly<Record<string, unknown>> | undefined)?.[step],
    value,
  );
}

function refuse(message: string, field: string): RequestError {
  return new RequestError(422, "InvalidOption", message, field);
}

/** The parts of a JSON pointer. */
function steps(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function at(schema: Described, schemaPath: string): Described | undefined {
  return steps(schemaPath).reduce<unknown>(
    (found, step) => (found as Readonly<Record<string, unknown>> | undefined)?.[step],
    schema,
  ) as Described | undefined;
}

function describe(schema: Described | undefined): string {
  if (schema === undefined) return "something else";
  if (schema.anyOf !== undefined) return schema.anyOf.map(describe).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return `one of ${schema.enum.join(", ")}`;
  const { type, minimum: least, maximum: most } = schema;
  const range =
    least === undefined ? "" : most === undefined ? ` from ${least} on` : ` from ${least} to ${most}`;
  switch (type) {
    case "integer":
      return `a whole number${range}`;
    case "number":
      return `a number${range}`;
    case "string":
      return [
        "a string",
        ...(schema.maxLength === undefined
          ? []
          : [`of ${schema.minLength ?? 0} to ${schema.maxLength} characters`]),
        ...(schema.pattern === undefined ? [] : [`that matches ${schema.pattern}`]),
      ].join(" ");
    case "boolean":
      return "true or false";
    case "null":
      return "null";
    case "array":
      return schema.maxItems === undefined ? "a list" : `a list of at most ${schema.maxItems} items`;
    case "object":
      return "an object";
    case undefined:
    default:
      return "a JSON value";
  }
}
