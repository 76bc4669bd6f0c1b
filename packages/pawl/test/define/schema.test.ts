import * as v from "valibot";
import { describe, expect, test } from "vitest";
import * as z from "zod";

import { InvalidInput, InvalidOption, InvalidState, SchemaNotStable } from "../../dist/values/errors.js";
import { checkSchema, checkStable, parse, type Schema, type } from "../../dist/define/schema.js";

const order = {
  zod: z.object({ id: z.string(), items: z.array(z.object({ price: z.number() })).default([]) }),
  valibot: v.object({
    id: v.string(),
    items: v.optional(v.array(v.object({ price: v.number() })), []),
  }),
};
const asyncOrder = {
  zod: order.zod.refine(async (value) => value.id !== "taken", { path: ["id"], message: "is taken" }),
  valibot: v.pipeAsync(
    order.valibot,
    v.checkAsync(async (value) => value.id !== "taken", "is taken"),
  ),
};

for (const library of ["zod", "valibot"] as const) {
  describe(`a schema of ${library}`, () => {
    test("gives its output at once", () => {
      expect(parse(order[library], { id: "a" }, "InvalidInput", "input")).toEqual({ id: "a", items: [] });
    });

    test("refuses with the error that was asked for and the path of each issue", () => {
      const bad = { id: 1, items: [{ price: 1 }, { price: "2" }] };
      expect(() => parse(order[library], bad, "InvalidInput", "input")).toThrow(InvalidInput);
      expect(() => parse(order[library], bad, "InvalidState", "state")).toThrow(InvalidState);
      expect(() => parse(order[library], bad, "InvalidState", "state")).toThrow(
        /^state does not match its schema: state\.id: .*; state\.items\[1\]\.price: /,
      );
      expect(() => parse(order[library], null, "InvalidInput", "input")).toThrow(
        /does not match its schema: input: /,
      );
    });

    test("gives a promise when it is asynchronous", async () => {
      const parsed = parse(asyncOrder[library], { id: "a" }, "InvalidInput", "input");
      expect(parsed).toBeInstanceOf(Promise);
      await expect(parsed).resolves.toEqual({ id: "a", items: [] });
      const refused = parse(asyncOrder[library], { id: "taken" }, "InvalidInput", "input");
      await expect(refused).rejects.toThrow(InvalidInput);
      await expect(refused).rejects.toThrow(/is taken/);
    });

    test("is stable when it accepts its own output as JSON", async () => {
      const stored = { value: { id: "a", items: [] }, text: '{"id":"a","items":[]}' };
      expect(checkStable(order[library], { id: "a" }, "input")).toEqual(stored);
      await expect(checkStable(asyncOrder[library], { id: "a" }, "input")).resolves.toEqual(stored);
    });
  });
}

describe("a schema that is not stable is refused with an explanation", () => {
  const explanation =
    /^the schema of input is not stable: Pawl stores its output as JSON and parses it again/;
  const unstable: [string, Schema, unknown][] = [
    ["a date that is not read from text", z.object({ at: z.date() }), { at: new Date() }],
    ["a transformation to another type", z.object({ n: z.string().transform(Number) }), { n: "1" }],
    ["one that changes its output once more", z.object({ n: z.number().transform((n) => n + 1) }), { n: 1 }],
    ["the same of valibot", v.object({ n: v.pipe(v.string(), v.transform(Number)) }), { n: "1" }],
  ];
  for (const [name, schema, value] of unstable) {
    test(name, () => {
      expect(() => checkStable(schema, value, "input")).toThrow(SchemaNotStable);
      expect(() => checkStable(schema, value, "input")).toThrow(explanation);
    });
  }

  test("an asynchronous schema is refused as not stable", async () => {
    const schema = z.object({ n: z.string().transform(async (text) => Number(text)) });
    await expect(checkStable(schema, { n: "1" }, "input")).rejects.toThrow(SchemaNotStable);
  });

  test("a schema that revives its stored value is stable", () => {
    const at = "2024-02-29T12:00:00.000Z";
    const schema = z.object({ at: z.coerce.date() });
    expect(checkStable(schema, { at: new Date(at) }, "input")).toMatchObject({ value: { at } });
  });

  test("a bad input is an invalid input, not an unstable schema", () => {
    expect(() => checkStable(order.zod, { id: 1 }, "input")).toThrow(InvalidInput);
  });
});

function broken(validate: () => never | Promise<never>): Schema {
  return { "~standard": { version: 1, vendor: "test", validate } };
}

describe("a schema that throws", () => {
  const thrown = new Error("broken");
  test("is an error of the value, with the cause", async () => {
    const sync = broken(() => {
      throw thrown;
    });
    expect(() => parse(sync, 1, "InvalidState", "state")).toThrow(InvalidState);
    expect(() => parse(sync, 1, "InvalidState", "state")).toThrow(
      expect.objectContaining({ message: "the schema of state threw: Error: broken", cause: thrown }),
    );
    const rejecting = broken(() => Promise.reject(thrown));
    await expect(parse(rejecting, 1, "InvalidInput", "input")).rejects.toThrow(InvalidInput);
  });
});

describe("the schema of a definition", () => {
  test("is nothing at run time for type<T>() and when left out", () => {
    expect(checkSchema(type<{ n: number }>(), "state")).toBeUndefined();
    expect(checkSchema(undefined, "state")).toBeUndefined();
  });

  test("is any Standard Schema, also one that is a function", () => {
    expect(checkSchema(order.zod, "state")).toBe(order.zod);
    const callable = Object.assign(() => {}, { "~standard": order.zod["~standard"] });
    expect(checkSchema(callable, "state")).toBe(callable);
  });

  test("refuses anything else", () => {
    for (const given of [null, 1, "string", {}, { n: 1 }, { "~standard": 1 }, type]) {
      expect(() => checkSchema(given, "state")).toThrow(InvalidOption);
      expect(() => checkSchema(given, "state")).toThrow(
        /^state must be a schema that implements Standard Schema/,
      );
    }
  });
});

test("a long list of issues is cut", () => {
  const bad = Array.from({ length: 50 }, (_, n) => n);
  expect(() => parse(z.array(z.string()), bad, "InvalidInput", "input")).toThrow(
    /input\[4\]: .*; and 45 more$/,
  );
});
