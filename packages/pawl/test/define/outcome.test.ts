import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { child } from "../../dist/define/child.js";
import { InvalidOutcome } from "../../dist/values/errors.js";
import { awaitedNames, checkOutcome, stepHelpers } from "../../dist/define/outcome.js";
import { untyped } from "./support/untyped.js";

const { next, retry, awaitSignal, spawn, done, stop } = stepHelpers;
const untypedNext = untyped(next);
const untypedAwait = untyped(awaitSignal);
const untypedSpawn = untyped(spawn);
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
    const options = { priority: -5, partitionKey: "k", rateLimit: { name: "stripe", key: "eu" }, weight: 3 };
    expect(check(next("ship", 1, options))).toMatchObject({ options });
    expect(check(awaitSignal("paid", "ship", { n: 1 }))).toMatchObject({
      kind: "await",
      names: "paid",
      step: "ship",
      state: { n: 1 },
      options: {},
    });
    expect(
      check(awaitSignal(["paid", "cancelled"], "ship", 1, { timeout: "1h", match: { id: 7 } })),
    ).toMatchObject({ names: ["paid", "cancelled"], options: { timeout: "1h", match: { id: 7 } } });
    const children = [child("resize", { path: "a" }), child("resize", { path: "b" })];
    expect(check(spawn("ship", children, { n: 1 }))).toMatchObject({
      kind: "spawn",
      step: "ship",
      children,
      state: { n: 1 },
    });
    expect(check(spawn("ship", [], 1))).toMatchObject({ children: [] });
    expect(check(retry({ n: 1 }, "10s"))).toMatchObject({ kind: "retry", state: { n: 1 }, delay: "10s" });
    expect(check(done({ ok: true }))).toMatchObject({ kind: "done", result: { ok: true } });
    expect(check(done())).toMatchObject({ kind: "done", result: undefined });
    expect(check(stop("no"))).toMatchObject({ kind: "stop", reason: "no" });
  });

  test("names a step of a set as well as of a map", () => {
    expect(checkOutcome(next("a", 1), new Set(["a"]), "a")).toMatchObject({ step: "a" });
  });
});

test("the names of an await are a list, each once", () => {
  expect(awaitedNames(awaitSignal("paid", "ship", 1))).toEqual(["paid"]);
  expect(awaitedNames(awaitSignal(["b", "a", "b"], "ship", 1))).toEqual(["b", "a"]);
});

describe("a value that is not an outcome is refused, with the returned value", () => {
  const refused: [unknown, RegExp][] = [
    [
      undefined,
      /^step "start" returned undefined; did you forget "return"\? a step must return ctx\.next, ctx\.retry, ctx\.awaitSignal, ctx\.spawn, ctx\.done or ctx\.stop$/,
    ],
    [null, /returned null; /],
    [next, /returned function next; did you forget to call it\? /],
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

  test("always in a bounded message", () => {
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
  const refuses = (returned: unknown, message: string | RegExp) => {
    expect(() => check(returned)).toThrow(InvalidOutcome);
    expect(() => check(returned)).toThrow(message);
  };

  test("when it goes to a step that does not exist", () => {
    const problem = 'there is no step "shipp"; the steps are start, awaitPay, ship; did you mean "ship"?';
    refuses(next("shipp", 1), `step "start" returned next(…): ${problem}`);
    refuses(awaitSignal("paid", "shipp", 1), `step "start" returned awaitSignal(…): ${problem}`);
    refuses(spawn("shipp", [], 1), `step "start" returned spawn(…): ${problem}`);
    refuses(untypedNext(undefined, 1), /there is no step undefined; the steps are/);
    refuses(untypedSpawn([], "ship", 1), /there is no step \[\]; the steps are/);
    refuses(next("constructor", 1), /there is no step "constructor"/);
  });

  test("when it has no state", () => {
    for (const returned of [
      untypedNext("ship"),
      untypedRetry(undefined, 1),
      untypedAwait("paid", "ship"),
      untypedSpawn("ship", []),
    ]) {
      refuses(returned, "its state is missing; pass ctx.state to keep it");
    }
  });

  test("when its delay or timeout is not a duration", () => {
    for (const duration of [null, -1, "10", "5 s", Number.NaN]) {
      refuses(untypedRetry(1, duration), /^step "start" returned retry\(…\): its delay must be a duration/);
      refuses(
        untypedAwait("paid", "ship", 1, { timeout: duration }),
        /^step "start" returned awaitSignal\(…\): its timeout must be a duration/,
      );
    }
    refuses(untypedRetry(1), /its delay must be a duration/);
    expect(check(awaitSignal("paid", "ship", 1, { timeout: 0 }))).toMatchObject({ kind: "await" });
    expect(check(awaitSignal("paid", "ship", 1, { timeout: undefined }))).toMatchObject({ kind: "await" });
  });

  test("when it has options that do not exist or are out of range", () => {
    refuses(
      untypedNext("ship", 1, { prority: 1 }),
      'unknown option "prority" in its options; allowed: priority, partitionKey, rateLimit, weight, concurrency; ' +
        'did you mean "priority"?',
    );
    refuses(next("ship", 1, { priority: 40_000 }), /priority must be a whole number/);
    refuses(untypedNext("ship", 1, null), /its options must be an object, not null/);
    refuses(
      untypedAwait("paid", "ship", 1, { timout: 1 }),
      'unknown option "timout" in its options; allowed: timeout, match; did you mean "timeout"?',
    );
    refuses(untypedAwait("paid", "ship", 1, "1h"), /its options must be an object, not a string/);
    expect(check(untypedNext("ship", 1, { priority: undefined }))).toMatchObject({ kind: "next" });
  });

  test("when its partition key is not a string of at most 512 bytes", () => {
    refuses(next("ship", 1, { partitionKey: "" }), /partitionKey must be a string that is not empty, not ""/);
    refuses(next("ship", 1, { partitionKey: "é".repeat(257) }), /partitionKey must be at most 512 bytes/);
    refuses(untypedNext("ship", 1, { partitionKey: 7 }), /partitionKey must be a string .* not 7/);
    refuses(next("ship", 1, { partitionKey: "a\0" }), /partitionKey must not contain/);
    for (const partitionKey of [null, undefined, "é".repeat(256)]) {
      expect(check(next("ship", 1, { partitionKey }))).toMatchObject({ kind: "next" });
    }
  });

  test("when its rate limit or weight cannot be one", () => {
    refuses(next("ship", 1, { rateLimit: "Stripe" }), /the name of a limit must be .*, not "Stripe"/);
    refuses(next("ship", 1, { weight: 2 }), /weight is 2, but rateLimit is missing/);
    refuses(next("ship", 1, { rateLimit: "stripe", weight: 0 }), /weight must be a whole number from 1 to/);
  });

  test("when it awaits names that no signal can have", () => {
    const rule = /the name of a signal must be 1 to 128 characters/;
    for (const names of [
      undefined,
      null,
      "",
      "no spaces",
      7,
      {},
      ["paid", "no spaces"],
      [undefined],
      [["a"]],
    ]) {
      refuses(untypedAwait(names, "ship", 1), rule);
    }
    // oxlint-disable-next-line no-sparse-arrays -- a hole is no name
    refuses(untypedAwait(["paid", , "cancelled"], "ship", 1), rule);
    refuses(
      awaitSignal([], "ship", 1),
      "its names must be one name of a signal, or a list of 1 to 100 names, not a list of 0",
    );
    const names = Array.from({ length: 101 }, (_, index) => `s${index}`);
    refuses(awaitSignal(names, "ship", 1), /a list of 1 to 100 names, not a list of 101/);
    expect(check(awaitSignal(names.slice(1), "ship", 1))).toMatchObject({ kind: "await" });
  });

  test("when its match is not an object of members", () => {
    class Money {
      readonly amount = 7;
      toJSON() {
        return this.amount;
      }
    }
    const refused: [unknown, RegExp][] = [
      [null, /not null$/],
      [7, /not 7$/],
      ["paid", /not "paid"$/],
      [[{ id: 7 }], /not \[{ id: 7 }\]$/],
      [new Map([["id", 7]]), /not Map\(1\)$/],
      [new Date(0), /not 1970-01-01T00:00:00.000Z$/],
      [new Money(), /not Money { amount: 7 }$/],
      [() => true, /not a function$/],
    ];
    for (const [match, message] of refused) {
      refuses(untypedAwait("paid", "ship", 1, { match }), /its match must be a plain object with members/);
      refuses(untypedAwait("paid", "ship", 1, { match }), message);
    }
    for (const match of [{}, { id: { nested: [1] } }, Object.create(null), undefined]) {
      expect(check(untypedAwait("paid", "ship", 1, { match }))).toMatchObject({ kind: "await" });
    }
  });

  test("when its children are not a list of children", () => {
    const one = child("resize");
    refuses(untypedSpawn("ship", one, 1), /its children must be an array of child\(…\), not { target/);
    refuses(untypedSpawn("ship", undefined, 1), /its children must be an array .*, not undefined/);
    refuses(
      untypedSpawn("ship", [one, { target: "resize" }], 1),
      'children[1] must be made by child(definition, input), not { target: "resize" }',
    );
    refuses(untypedSpawn("ship", [one, "resize"], 1), /children\[1\] must be .*, not "resize"/);
    refuses(untypedSpawn("ship", [hostile], 1), /children\[0\] must be .*, not {}/);
    refuses(untypedSpawn("ship", new Array(2), 1), /children\[0\] must be .*, not undefined/);
  });

  test("when it has more than 10,000 children", () => {
    const many = Array.from({ length: 10_001 }, () => child("resize"));
    refuses(spawn("ship", many, 1), "it has 10001 children; one spawn starts at most 10000");
    expect(check(spawn("ship", many.slice(1), 1))).toMatchObject({ kind: "spawn" });
  });
});
