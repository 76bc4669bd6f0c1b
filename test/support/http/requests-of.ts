/**
 * Requests made at random of an OpenAPI document: mostly what its schemas ask for, with something wrong in it now and then, and sometimes
 * nothing but rubbish. The same seed gives the same requests.
 */

import fc from "fast-check";
import type { ListedOperation } from "./openapi.js";

export interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

interface AnySchema {
  readonly type?: string | readonly string[];
  readonly anyOf?: readonly AnySchema[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly items?: AnySchema;
  readonly properties?: Readonly<Record<string, AnySchema>>;
  readonly required?: readonly string[];
}

/** Texts that mean something somewhere: names, ids (`RUN` is one that exists), keys, times, and what breaks parsers. */
const words = [
  "fuzz",
  "other",
  "default",
  "RUN",
  "RUN",
  "64",
  "1",
  "key",
  "1s",
  "5m",
  "2030-01-31T12:00:00Z",
  "a.b",
  "*",
  "#",
  "",
  " ",
  "__proto__",
  "constructor",
  "\u0000",
  "\ud800",
  "é\u{1f600}",
  "a".repeat(600),
  "%",
  "../..",
  "9223372036854775808",
  "-1",
  "1e999",
  "NaN",
  "null",
  "true",
  "{",
  "'; drop table runs; --",
  "0001-01-01",
  "+275760-09-13T00:00:00Z",
  "infinity",
];
const texts = fc.constantFrom(...words);
const deep = JSON.parse(`${"[".repeat(150)}${"]".repeat(150)}`) as unknown;
const rubbish: fc.Arbitrary<unknown> = fc.oneof(
  texts,
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -1,
    1.5,
    2 ** 31,
    2 ** 53,
    1e308,
    -1e308,
    [],
    {},
    [null],
    deep,
  ),
  fc.constant(JSON.parse('{"__proto__": {"polluted": true}, "": 1}')),
  fc.jsonValue({ maxDepth: 3 }),
);

/** A value of this schema, or now and then of none. */
function valueOf(schema: AnySchema): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 15, arbitrary: fittingValueOf(schema) }, { weight: 1, arbitrary: rubbish });
}

function fittingValueOf(schema: AnySchema): fc.Arbitrary<unknown> {
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(valueOf));
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const { minimum = -1_000, maximum = 100_000 } = schema;
  switch (schema.type) {
    case "string":
      return fc.oneof(texts, fc.string({ maxLength: 20 }));
    case "integer":
      return fc.oneof(fc.constantFrom(minimum, maximum), fc.integer({ min: minimum, max: maximum }));
    case "number":
      return fc.double({ min: minimum, max: maximum, noNaN: true });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array":
      return fc.array(valueOf(schema.items ?? {}), { maxLength: Math.min(schema.maxItems ?? 4, 4) });
    case "object":
      return objectOf(schema);
    case undefined:
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

/** With at most three of its optional members: with all of them one would always be wrong. */
function objectOf({ properties = {}, required = [] }: AnySchema): fc.Arbitrary<object> {
  const optional = Object.keys(properties).filter((name) => !required.includes(name));
  const fitting = fc
    .subarray(optional, { maxLength: Math.min(3, optional.length) })
    .chain((names) =>
      fc.record(
        Object.fromEntries([...required, ...names].map((name) => [name, valueOf(properties[name] ?? {})])),
      ),
    );
  const extra = fc
    .tuple(fitting, texts, rubbish)
    .map(([object, name, value]) => ({ ...object, [name]: value }));
  return fc.oneof({ weight: 15, arbitrary: fitting }, { weight: 1, arbitrary: extra });
}

/** What leads somewhere, more often than not. */
const known: Readonly<Record<string, string>> = {
  id: "RUN",
  name: "fuzz",
  event: "go",
  queue: "default",
  topic: "a.b",
};

function paramOf(name: string, schema: AnySchema): fc.Arbitrary<unknown> {
  const fitting = known[name];
  if (fitting === undefined) return valueOf(schema);
  return fc.oneof({ weight: 4, arbitrary: fc.constant(fitting) }, { weight: 1, arbitrary: valueOf(schema) });
}

/** Requests of this operation. */
export function requestsOf({ method, path, operation }: ListedOperation): fc.Arbitrary<FuzzRequest> {
  const { parameters = [], requestBody } = operation;
  const placed = (where: "path" | "query" | "header"): fc.Arbitrary<object> => {
    const here = parameters.filter((one) => one.in === where);
    const properties = Object.fromEntries(
      here.map(({ name, schema: wanted }) => [name, wanted as AnySchema]),
    );
    if (where !== "path") return objectOf({ properties });
    return fc.record(
      Object.fromEntries(here.map(({ name, schema: wanted }) => [name, paramOf(name, wanted as AnySchema)])),
    );
  };
  const schema = Object.values(requestBody?.content ?? {})[0]?.schema;
  const json = (schema === undefined ? fc.constant(undefined) : valueOf(schema)).map((value) =>
    value === undefined ? undefined : JSON.stringify(value),
  );
  const body = fc.oneof(
    { weight: 20, arbitrary: json },
    { weight: 1, arbitrary: fc.constantFrom("", "{", "\u0000", "[1,", '{"a":1}{', "nul", undefined) },
  );
  const type = fc.oneof(
    { weight: 20, arbitrary: fc.constant("application/json") },
    {
      weight: 1,
      arbitrary: fc.constantFrom("text/plain", "application/xml", "x", "application/json; charset=utf-7"),
    },
  );
  const otherMethod = fc.constantFrom("GET", "PUT", "PATCH", "DELETE", "POST", "OPTIONS");
  return fc
    .tuple(
      placed("path"),
      placed("query"),
      placed("header"),
      body,
      type,
      fc.boolean(),
      otherMethod,
      fc.nat(30),
    )
    .map(([params, query, headers, text, contentType, hasFilter, other, chance]) => {
      const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
        encode((params as Readonly<Record<string, unknown>>)[name]),
      );
      const asked = Object.entries(query).map(
        ([name, value]) => `${encode(name)}=${encode(limited(name, value))}`,
      );
      if (hasFilter && chance < 3) asked.push("input.a.b=1");
      return {
        method: chance === 30 ? other : method,
        path: filled + (asked.length === 0 ? "" : `?${asked.join("&")}`),
        headers: { ...headerTexts(headers), ...(text === undefined ? {} : { "content-type": contentType }) },
        body: text?.replaceAll(/("wait(?:Seconds|Ms)?":)\s*\d[\d.e+-]*/g, "$10.05"),
      };
    });
}

/** Nobody waits long for the answer. */
function limited(name: string, value: unknown): unknown {
  return name.startsWith("wait") && typeof value === "number" && value > 0.1 ? 0.05 : value;
}

/** By JSON: rubbish need not have a text of its own. */
function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "undefined");
}

function encode(value: unknown): string {
  const text = textOf(value);
  return /\p{Surrogate}/u.test(text) ? "%ed%a0%80" : encodeURIComponent(text);
}

/** What a header can carry. */
function headerTexts(headers: object): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => /^[a-z-]+$/.test(name))
      .map(([name, value]) => [
        name,
        textOf(value)
          .replaceAll(/[^\x20-\x7e]/g, "?")
          .slice(0, 1_000),
      ]),
  );
}
