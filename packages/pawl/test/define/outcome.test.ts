import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { InvalidOutcome } from "../../dist/define/errors.js";
import { checkOutcome, stepHelpers } from "../../dist/define/outcome.js";
import { untyped } from "./support/untyped.js";

const { next, retry, done, stop } = stepHelpers;
const untypedNext = untyped(next);
const untypedRetry = untyped(retry);
const steps = new Map([
  ["start", 1],
  ["awaitPay", 2],
  ["ship", 3],
]);
const check = (returned: unknown) => checkOutcome(returned, steps, 'step "start"');
const hostile = new Proxy(
  {},
  {
    get: () => {
      throw new Error("looked at");
    },
  },
);

describe("an outcome", () => {
  test("is plain data, made by helpers that need no ctx", () => {
    expect(check(next("ship", { n: 1 }))).toMatchObject({
      kind: "next",
      step: "ship",
      state: { n: 1 },
      options: {},
    });
    expect(check(next("ship", 1, { priority: -5 }))).toMatchObject({ options: { priority: -5 } });
    expect(check(retry({ n: 1 }, "10s"))).toMatchObject({ kind: "retry", state: { n: 1 }, delay: "10s" });
    expect(check(done({ ok: true }))).toMatchObject({ kind: "done", result: { ok: true } });
    expect(check(done())).toMatchObject({ kind: "done", result: undefined });
    expect(check(stop("no"))).toMatchObject({ kind: "stop", reason: "no" });
  });

  test("names a step of a set as well as of a map", () => {
    expect(checkOutcome(next("a", 1), new Set(["a"]), "a")).toMatchObject({ step: "a" });
  });
});

describe("what is not an outcome is refused, showing what was returned", () => {
  const refused: [unknown, RegExp][] = [
    [
      undefined,
      /^step "start" returned undefined, perhaps for want of a "return"; a step returns what ctx\.next/,
    ],
    [null, /returned null; /],
    [next, /returned function next, perhaps one that was not called; /],
    ["ship", /returned "ship"; /],
    [{ kind: "done", result: 1 }, /returned { kind: "done", result: 1 }; /],
    [JSON.parse(JSON.stringify(done(1))), /returned { kind: "done", result: 1 }; /],
    [Promise.resolve(done(1)), /returned a Promise; /],
    [[done(1)], /returned \[{ kind: "done", result: 1 }\]; /],
  ];
  for (const [returned, message] of refused) {
    test(String(message), () => {
      expect(() => check(returned)).toThrow(InvalidOutcome);
      expect(() => check(returned)).toThrow(message);
    });
  }

  test("in a bounded message, whatever it is", () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withMap: true, withNullPrototype: true }), (returned) => {
        try {
          check(returned);
        } catch (error) {
          return error instanceof InvalidOutcome && error.message.length < 500;
        }
        return false;
      }),
    );
    expect(() => check("x".repeat(1e6))).toThrow(InvalidOutcome);
    expect(() => check(hostile)).toThrow(InvalidOutcome);
  });
});

describe("an outcome that cannot be carried out is refused", () => {
  test("when it goes to a step that does not exist", () => {
    expect(() => check(next("shipp", 1))).toThrow(
      'step "start" returned next(…): there is no step "shipp"; ' +
        'the steps are start, awaitPay, ship; did you mean "ship"?',
    );
    expect(() => check(untypedNext(undefined, 1))).toThrow(/there is no step undefined; the steps are/);
    expect(() => check(next("constructor", 1))).toThrow(InvalidOutcome);
  });

  test("when its delay is not a duration", () => {
    for (const delay of [undefined, -1, "10", "5 s", Number.NaN]) {
      expect(() => check(untypedRetry(1, delay))).toThrow(InvalidOutcome);
      expect(() => check(untypedRetry(1, delay))).toThrow(
        /^step "start" returned retry\(…\): its delay must be a duration/,
      );
    }
  });

  test("when it has options that do not exist or are out of range", () => {
    expect(() => check(untypedNext("ship", 1, { weight: 1 }))).toThrow(
      /unknown option "weight" in its options; allowed: priority/,
    );
    expect(() => check(next("ship", 1, { priority: 40_000 }))).toThrow(/priority must be a whole number/);
    expect(() => check(untypedNext("ship", 1, null))).toThrow(/its options must be an object, not null/);
    expect(check(untypedNext("ship", 1, { priority: undefined }))).toMatchObject({ kind: "next" });
  });
});
