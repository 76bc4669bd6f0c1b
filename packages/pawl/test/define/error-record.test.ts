import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { describeError, describeStop, type ErrorRecord } from "../../dist/values/error-record.js";
import { RunNotFound } from "../../dist/values/errors.js";
import { toJson } from "../../dist/values/json.js";

function thrower(): never {
  throw new Error("looked at");
}
const hostileHandler: ProxyHandler<object> = {
  get: thrower,
  has: thrower,
  ownKeys: thrower,
  getPrototypeOf: thrower,
  getOwnPropertyDescriptor: thrower,
};

/** Whether the record can be stored: nothing that jsonb refuses, 8 KiB, and as much for stacks. */
function expectStorable(record: ErrorRecord): void {
  expect(JSON.parse(toJson(record, "error").text)).toEqual(record);
  toJson(bare(record), "error", 8192);
  expect(JSON.stringify(stacks(record)).length).toBeLessThanOrEqual(8192);
}

/** The record and its causes without their stacks. */
function bare({ stack: _stack, cause, ...record }: ErrorRecord): ErrorRecord {
  return cause === undefined ? record : { ...record, cause: bare(cause) };
}

function stacks({ stack, cause }: ErrorRecord): string {
  return `${stack ?? ""}${cause === undefined ? "" : stacks(cause)}`;
}

function causes(record: ErrorRecord): number {
  return record.cause === undefined ? 0 : 1 + causes(record.cause);
}

describe("the record of a thrown error", () => {
  test("has its name, message and code, and the step", () => {
    const error = Object.assign(new TypeError("no card"), { code: "E_CARD" });
    expect(bare(describeError(error, "charge"))).toEqual({
      name: "TypeError",
      message: "no card",
      code: "E_CARD",
      step: "charge",
    });
    expect(bare(describeError(new RunNotFound("no run 7")))).toEqual({
      name: "RunNotFound",
      message: "no run 7",
      code: "RunNotFound",
    });
    expect(describeError(Object.assign(new Error("x"), { code: 23 })).code).toBe("23");
  });

  test("has its causes, at most four below it", () => {
    expect(bare(describeError(new Error("a", { cause: new RangeError("b", { cause: "c" }) })))).toEqual({
      name: "Error",
      message: "a",
      cause: { name: "RangeError", message: "b", cause: { name: "Error", message: "c" } },
    });
    const circular = new Error("again");
    circular.cause = circular;
    expect(causes(describeError(circular))).toBe(4);
  });

  test("names the members of an AggregateError, which often has no message", () => {
    const errors = ["ECONNREFUSED ::1", "ECONNREFUSED 127.0.0.1"].map((message) => new Error(message));
    const record = describeError(new AggregateError(errors));
    expect(record.message).toBe("several errors (2: ECONNREFUSED ::1; ECONNREFUSED 127.0.0.1)");
    expect(record.cause).toMatchObject({ name: "Error", message: "ECONNREFUSED ::1" });
    expect(describeError(new AggregateError(Array.from({ length: 9 }), "many")).message).toBe(
      "many (9: undefined; undefined; undefined; …)",
    );
  });

  test("is of anything shaped like an error, as errors of other realms are", () => {
    expect(describeError({ name: "RemoteError", message: "far away" })).toEqual({
      name: "RemoteError",
      message: "far away",
    });
  });
});

describe("the record of a value that is not an error", () => {
  test("shows the thrown value", () => {
    expect(describeError("boom")).toEqual({ name: "Error", message: "boom" });
    expect(describeError(undefined).message).toBe("a value that is not an Error was thrown: undefined");
    expect(describeError(null).message).toBe("a value that is not an Error was thrown: null");
    expect(describeError(17n).message).toBe("a value that is not an Error was thrown: 17n");
    expect(describeError({ status: 500 }).message).toBe(
      "a value that is not an Error was thrown: { status: 500 }",
    );
  });
});

describe("describing never throws and is always storable", () => {
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const hostile: [string, unknown][] = [
    ["a proxy that throws", new Proxy({}, hostileHandler)],
    ["a proxy of an error that throws", new Proxy(new Error("x"), hostileHandler)],
    ["a revoked proxy", revoked.proxy],
    ["getters that throw", Object.defineProperty(new Error("x"), "message", { get: thrower })],
    ["an error without a prototype", Object.setPrototypeOf(new Error("x"), null)],
    ["a cause that throws", new Error("x", { cause: new Proxy({}, hostileHandler) })],
    [
      "a list of errors that throws",
      Object.assign(new Error("x"), { errors: new Proxy([1], hostileHandler) }),
    ],
    ["members of strange types", Object.assign(new Error("x"), { name: {}, message: 1n, code: Symbol("x") })],
    ["a name that is empty", Object.assign(new Error(""), { name: "" })],
    ["NUL and half a surrogate pair", new Error("a\0b\ud800c")],
    ["a long message", new Error("x".repeat(100_000))],
    ["a long message that grows when encoded", new Error("\u0001".repeat(100_000))],
    ["a long message of many bytes", new Error("😀".repeat(100_000))],
    ["a long name and code", Object.assign(new Error("x"), { name: "n".repeat(1e5), code: "c".repeat(1e5) })],
    [
      "long causes",
      [1, 2, 3, 4, 5].reduce((cause, n) => new Error(`${n}`.repeat(20_000), { cause }), new Error("x")),
    ],
    ["a symbol", Symbol("s")],
    ["a function", thrower],
    ["a deep object", JSON.parse('{"a":'.repeat(500) + "1" + "}".repeat(500))],
  ];
  for (const [name, thrown] of hostile) {
    test(name, () => {
      expectStorable(describeError(thrown, "charge"));
      expectStorable(describeStop(thrown, "charge"));
      expect(describeError(thrown, "charge").step).toBe("charge");
    });
  }

  test("describing anything at all never throws and is always storable", () => {
    const anything = fc.anything({ withBigInt: true, withDate: true, withMap: true, stringUnit: "binary" });
    const like = fc.record({
      name: anything,
      message: anything,
      code: anything,
      cause: anything,
      errors: anything,
      stack: fc.oneof(
        anything,
        fc.array(fc.string({ unit: "binary" })).map((texts) => texts.join("\n    at ")),
      ),
    });
    fc.assert(
      fc.property(fc.oneof(anything, like), (thrown) => {
        expectStorable(describeError(thrown, "s".repeat(128)));
        expectStorable(describeStop(thrown));
      }),
      { numRuns: 500 },
    );
  });

  test("a message that was cut says so, and keeps room for its cause", () => {
    const record = describeError(new Error("x".repeat(100_000), { cause: new Error("y".repeat(100_000)) }));
    expect(record.message).toMatch(/^x{3000,}… \(cut to fit\)$/);
    expect(record.cause?.message).toMatch(/^y{3000,}… \(cut to fit\)$/);
  });
});

describe("the record of a stop", () => {
  test("is that of the error given as the reason", () => {
    expect(bare(describeStop(new TypeError("no card"), "charge"))).toEqual({
      name: "TypeError",
      message: "no card",
      step: "charge",
    });
  });

  test("has a text as its message, and other values as their JSON", () => {
    expect(describeStop("out of stock")).toEqual({ name: "Stopped", message: "out of stock" });
    expect(describeStop({ left: 0 }, "ship")).toEqual({
      name: "Stopped",
      message: '{"left":0}',
      step: "ship",
    });
    expect(describeStop(undefined).message).toBe("stopped without a reason");
    expect(describeStop(null).message).toBe("null");
    expect(describeStop(1n).message).toBe("1n");
  });
});
