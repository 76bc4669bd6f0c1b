import * as fc from "fast-check";
import { expect, test } from "vitest";

import { pathSegment, shorten, show } from "../../dist/values/show.js";

test("values are shown as one would write them", () => {
  class Order {
    id = 1;
  }
  const shown: [unknown, string][] = [
    ["a", '"a"'],
    [-0, "-0"],
    [1n, "1n"],
    [undefined, "undefined"],
    [null, "null"],
    [Symbol("s"), "Symbol(s)"],
    [() => 1, "a function"],
    [show, "function show"],
    [new TypeError("no"), "TypeError: no"],
    [new Date(0), "1970-01-01T00:00:00.000Z"],
    [new Date(Number.NaN), "an invalid Date"],
    [new Map([[1, 2]]), "Map(1)"],
    [Promise.resolve(), "a Promise"],
    [new Order(), "Order { id: 1 }"],
    [Object.create(null), "{}"],
    [{ a: [1, { b: { c: { d: 1 } } }], "b-c": "x" }, '{ a: [1, { b: {…} }], "b-c": "x" }'],
    [Array.from({ length: 20 }, () => 0), "[0, 0, 0, 0, 0, 0, 0, 0, …]"],
  ];
  for (const [value, text] of shown) expect(show(value)).toBe(text);
});

test("the shown text is bounded and well-formed, and rendering never throws", () => {
  const anything = fc.anything({
    withBigInt: true,
    withMap: true,
    withNullPrototype: true,
    stringUnit: "binary",
  });
  fc.assert(fc.property(anything, (value) => show(value).length <= 200));
  const circular: unknown[] = [];
  circular.push(circular);
  expect(show(circular)).toBe("[[[[… 1 items]]]]");
  const throwing = {
    get a() {
      throw new Error("looked at");
    },
  };
  expect(show(throwing)).toBe("an object that throws when it is read");
});

test("a text is never cut within a surrogate pair", () => {
  expect(shorten("abc", 3)).toBe("abc");
  expect(shorten("abcd", 3)).toBe("ab…");
  expect(shorten("a😀bc", 3)).toBe("a…");
});

test("a path is written as code would", () => {
  expect(["items", 3, "price", "a-b", "0", Symbol("s")].map(pathSegment).join("")).toBe(
    '.items[3].price["a-b"]["0"][Symbol(s)]',
  );
});
