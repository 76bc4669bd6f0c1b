import * as fc from "fast-check";
import { Client } from "pg";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

import { fromJson, toJson } from "../../dist/values/json.js";
import type { Json } from "../../dist/values/json-types.js";

declare module "vitest" {
  interface ProvidedContext {
    databaseUrl: string;
  }
}

const client = new Client({ connectionString: inject("databaseUrl") });
beforeAll(() => client.connect());
afterAll(() => client.end());

/** Key order included. */
function withOrder(value: Json): unknown {
  if (Array.isArray(value)) return value.map(withOrder);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value).map(([key, member]) => [key, withOrder(member)]);
}

async function store(values: readonly { text: string }[]): Promise<Json[]> {
  const { rows } = await client.query<{ stored: string }>(
    "select value::jsonb::text as stored from unnest($1::text[]) with ordinality as given(value, place) order by place",
    [values.map(({ text }) => text)],
  );
  return rows.map(({ stored }) => fromJson(stored));
}

// Keys that jsonb and JavaScript order differently: other lengths in bytes than in characters, integers, astral ones.
const key = fc.oneof(
  fc.string({ unit: fc.constantFrom("a", "B", "é", "ﬀ", "😀", "\uffff", "0", "9", "_"), maxLength: 4 }),
  fc.nat().map(String),
  fc.constantFrom("__proto__", "constructor", "", "toString"),
);
const { value: json } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.string({ unit: "binary", maxLength: 12 }).filter((text) => !text.includes("\0")),
    fc.constantFrom(null, true, false, 1e21, 5e-324, Number.MAX_VALUE, -0),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(key, tie("value"), { maxKeys: 8, noNullPrototype: false }),
  ),
}));

test("jsonb returns the copy, in values and in key order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(json, { minLength: 10, maxLength: 20 }), async (values) => {
      const encoded = values.map((value) => toJson(value, "state"));
      const stored = await store(encoded);
      expect(stored.map(withOrder)).toStrictEqual(encoded.map(({ value }) => withOrder(value)));
    }),
    { numRuns: 100 },
  );
});

test("a large object keeps its order too", async () => {
  const value = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`${"k".repeat(n % 7)}é${n}`, n]));
  const encoded = toJson(value, "state");
  const [stored] = await store([encoded]);
  expect(withOrder(stored!)).toStrictEqual(withOrder(encoded.value));
});

test("a number is as long as jsonb writes it, with all its digits", async () => {
  const numbers = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(1e21, 1e-7, 1.5e300, -1e308, 5e-324, -2.5e-10, 1e20, 1e-6, Number.MAX_VALUE, 0),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(numbers, { minLength: 20, maxLength: 20 }), async (values) => {
      const { rows } = await client.query<{ bytes: number }>(
        "select octet_length(value::jsonb::text) as bytes from unnest($1::text[]) with ordinality as given(value, place) order by place",
        [values.map((value) => JSON.stringify(value))],
      );
      for (const [index, { bytes }] of rows.entries()) {
        expect(toJson(values[index], "state", bytes).value).toBe(values[index]! + 0);
        expect(() => toJson(values[index], "state", bytes - 1)).toThrow(`state is`);
      }
    }),
    { numRuns: 50 },
  );
});
