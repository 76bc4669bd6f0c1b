import { describe, expect, test } from "vitest";

import { InvalidOption } from "../../dist/values/errors.js";
import {
  checkFunction,
  checkInteger,
  checkOneOf,
  checkOptions,
  checkString,
  suggest,
} from "../../dist/values/options.js";

describe("an options object", () => {
  test("is given back when all its members are allowed", () => {
    const given = { queue: "a", delay: undefined };
    expect(checkOptions(given, ["queue", "delay"], "the options of start")).toBe(given);
    expect(checkOptions({}, ["queue"], "the options of start")).toEqual({});
  });

  test("with an unknown member is refused, with a suggestion and the allowed members", () => {
    expect(() => checkOptions({ prioritty: 1 }, ["queue", "priority"], "the options of start")).toThrow(
      new InvalidOption(
        'unknown option "prioritty" in the options of start; allowed: queue, priority; did you mean "priority"?',
      ),
    );
    expect(() => checkOptions({ colour: 1 }, ["queue", "priority"], "the options of start")).toThrow(
      'unknown option "colour" in the options of start; allowed: queue, priority',
    );
  });

  test("is an object", () => {
    for (const given of [undefined, null, 1, "queue", [], () => 1]) {
      expect(() => checkOptions(given, ["queue"], "the options of start")).toThrow(
        /^the options of start must be an object, not /,
      );
    }
  });
});

describe("a suggestion", () => {
  test("is the nearest name within two edits, ignoring case", () => {
    expect(suggest("maxattempts", ["maxCrashes", "maxAttempts"])).toBe('; did you mean "maxAttempts"?');
    expect(suggest("shpi", ["ship", "shop"])).toBe('; did you mean "ship"?');
    expect(suggest("retry", ["ship"])).toBe("");
  });

  test("is not made of words that are too short to be meant", () => {
    expect(suggest("x", ["a", "b"])).toBe("");
    expect(suggest("xy", ["ab"])).toBe("");
  });
});

describe("a checked value", () => {
  test("is given back if it is right", () => {
    expect(checkInteger(5, "n", { min: 1, max: 5 })).toBe(5);
    expect(checkString("é", "s", { maxBytes: 2 })).toBe("é");
    expect(checkFunction(String, "f")).toBe(String);
    expect(checkOneOf("b", "w", ["a", "b"])).toBe("b");
  });

  test("is refused if it is not, with its name and the given value", () => {
    for (const value of [0, 6, 1.5, "1", null, Number.NaN, Infinity, 1n, Object(1)]) {
      expect(() => checkInteger(value, "n", { min: 1, max: 5 })).toThrow(
        /^n must be a whole number from 1 to 5/,
      );
    }
    for (const value of ["", 1, null]) {
      expect(() => checkString(value, "s", { maxBytes: 2 })).toThrow(/^s must be a string that is not empty/);
    }
    expect(() => checkString("éa", "s", { maxBytes: 2 })).toThrow("s must be at most 2 bytes long, not 3");
    expect(() => checkString("\0", "s", { maxBytes: 2 })).toThrow(/^s must not contain/);
    expect(() => checkString("\ud800", "s", { maxBytes: 9 })).toThrow(/^s must not contain/);
    expect(() => checkFunction({}, "f")).toThrow("f must be a function, not {}");
    expect(() => checkOneOf("cancelld", "status", ["failed", "cancelled"])).toThrow(
      'status must be one of failed, cancelled, not "cancelld"; did you mean "cancelled"?',
    );
    expect(() => checkOneOf(1, "status", ["failed"])).toThrow("status must be one of failed, not 1");
  });
});
