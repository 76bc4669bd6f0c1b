import { describe, expect, test } from "vitest";

import { InvalidOption } from "../../dist/values/errors.js";
import { checkRateLimit } from "../../dist/define/rate-limit.js";

describe("a rate limit", () => {
  test("is a name, or a name and a key, and takes one token if nothing else is said", () => {
    expect(checkRateLimit("stripe", undefined)).toEqual({ name: "stripe", key: null, weight: 1 });
    expect(checkRateLimit({ name: "stripe", key: "eu" }, 5)).toEqual({
      name: "stripe",
      key: "eu",
      weight: 5,
    });
    expect(checkRateLimit("stripe", 1_000_000)).toMatchObject({ weight: 1_000_000 });
    expect(checkRateLimit({ name: "stripe", key: "é".repeat(128) }, 1)).toMatchObject({ name: "stripe" });
  });

  test("is none if it is left out", () => {
    expect(checkRateLimit(undefined, undefined)).toBeNull();
  });
});

describe("a value that is not a rate limit is refused with the rule", () => {
  const refused: [rateLimit: unknown, weight: unknown, message: string | RegExp][] = [
    [
      undefined,
      2,
      /^weight is 2, but rateLimit is missing; weight is the number of tokens to take from that limit$/,
    ],
    [null, undefined, /^rateLimit must be the name of a limit such as "stripe", or { name: .*; not null$/],
    [5, undefined, /; not 5$/],
    [["stripe"], undefined, /; not \["stripe"\]$/],
    ["", undefined, /^the name of a limit must be 1 to 48 characters .*, not ""$/],
    ["Stripe", undefined, /^the name of a limit must be .*, not "Stripe"$/],
    [{ key: "eu" }, undefined, /^the name of a limit must be .*, not undefined$/],
    [
      { name: "stripe" },
      undefined,
      'rateLimit { name: "stripe" } has no key; pass the name alone for one bucket, or add a key for a bucket per key',
    ],
    [
      { name: "stripe", key: "" },
      undefined,
      /^the key of rateLimit must be a string that is not empty, not ""$/,
    ],
    [{ name: "stripe", key: 7 }, undefined, /^the key of rateLimit must be a string .*, not 7$/],
    [{ name: "stripe", key: "é".repeat(129) }, undefined, /must be at most 256 bytes long, not 258$/],
    [
      { name: "stripe", kee: "eu" },
      undefined,
      /^unknown option "kee" in rateLimit; .* did you mean "key"\?$/,
    ],
    ["stripe", 0, /^weight must be a whole number from 1 to 1000000, not 0$/],
    ["stripe", 1.5, /^weight must be a whole number .*, not 1\.5$/],
    ["stripe", 1_000_001, /^weight must be a whole number .*, not 1000001$/],
    ["stripe", "2", /^weight must be a whole number .*, not "2"$/],
  ];
  for (const [rateLimit, weight, message] of refused) {
    test(String(message), () => {
      expect(() => checkRateLimit(rateLimit, weight)).toThrow(InvalidOption);
      expect(() => checkRateLimit(rateLimit, weight)).toThrow(message);
    });
  }
});
