import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { InvalidOption } from "../../dist/values/errors.js";
import { checkName, checkSignalName, checkStepName, checkVersion } from "../../dist/values/names.js";

const badOfAll = ["", " ", "a b", "a/b", "ä", "a\n", "a\0", "😀", null, undefined, 1, {}, ["a"], Symbol("a")];

describe("names of definitions, queues and limits", () => {
  test("are up to 48 of a-z, 0-9, _ and -, and begin with a letter or digit", () => {
    for (const name of ["a", "0", "onboard-user", "a_b-c", "x".repeat(48)]) {
      expect(checkName("definition", name)).toBe(name);
    }
    for (const name of [...badOfAll, "A", "_a", "-a", "a.b", "x".repeat(49)]) {
      expect(() => checkName("queue", name)).toThrow(InvalidOption);
    }
  });

  test("are refused with the rule and the given value", () => {
    expect(() => checkName("limit", "Stripe API")).toThrow(
      "the name of a limit must be 1 to 48 characters of a-z, 0-9, _ and -, the first a letter or digit, " +
        'not "Stripe API"',
    );
  });
});

describe("names of steps and signals", () => {
  test("are up to 128 of a-z, A-Z, 0-9, ., _ and -", () => {
    for (const name of ["a", "awaitPay", "user.signup", "-", "X".repeat(128)]) {
      expect(checkStepName(name)).toBe(name);
      expect(checkSignalName(name)).toBe(name);
    }
    for (const name of [...badOfAll, "x".repeat(129)]) {
      expect(() => checkStepName(name)).toThrow(/^the name of a step must be 1 to 128 characters/);
      expect(() => checkSignalName(name)).toThrow(/^the name of a signal must be 1 to 128 characters/);
    }
  });

  test("are never longer than the 256 bytes that the store takes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (name) => {
        try {
          expect(Buffer.byteLength(checkStepName(name))).toBeLessThanOrEqual(256);
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidOption);
        }
      }),
    );
  });
});

test("a version is a whole number from 1 that fits into an integer column", () => {
  for (const version of [1, 2, 2_147_483_647]) expect(checkVersion(version)).toBe(version);
  for (const version of [0, -1, 1.5, Number.NaN, 2_147_483_648, "1", null, 1n]) {
    expect(() => checkVersion(version)).toThrow(/^version must be a whole number from 1 to 2147483647, not /);
  }
});
