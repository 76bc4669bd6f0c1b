import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { NotSerializable, PayloadTooLarge } from "../../dist/values/errors.js";
import { fromJson, toJson } from "../../dist/values/json.js";
import { anything } from "./support/anything.js";

/** What a value looks like with its key order: deep equality alone does not see it. */
function withOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withOrder);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value).map(([key, member]) => [key, withOrder(member)]);
}

/** A value nested so many levels deep. */
function nest(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = level % 2 ? { a: value } : [value];
  return value;
}

function keysOf(value: unknown): string[] {
  return Object.keys(Object(value));
}

function refusal(value: unknown, what = "state"): NotSerializable {
  try {
    toJson(value, what);
  } catch (error) {
    if (error instanceof NotSerializable) return error;
    throw error;
  }
  throw new Error("the value was not refused");
}

describe("every value", () => {
  test("that is JSON comes through unchanged", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false, stringUnit: "grapheme" }), (value) => {
        fc.pre(!JSON.stringify(value).includes("\\u0000"));
        const { value: copy, text } = toJson(value, "state");
        // JSON.parse(JSON.stringify()) only turns -0 into 0, as PostgreSQL does.
        expect(copy).toEqual(JSON.parse(JSON.stringify(value)));
        expect(withOrder(fromJson(text))).toEqual(withOrder(copy));
      }),
      { numRuns: 500 },
    );
  });

  test("either is read back exactly as its copy, key order included, or is refused with a path", () => {
    fc.assert(
      fc.property(anything, (value) => {
        let encoded;
        try {
          encoded = toJson(value, "state");
        } catch (error) {
          if (!(error instanceof NotSerializable || error instanceof PayloadTooLarge)) throw error;
          expect(error.message).toMatch(/^state/);
          return;
        }
        const read = fromJson(encoded.text);
        expect(withOrder(read)).toStrictEqual(withOrder(encoded.value));
        expect(read).toStrictEqual(encoded.value);
        // What was read back is a fixed point.
        expect(toJson(read, "state")).toStrictEqual(encoded);
      }),
      { numRuns: 3000 },
    );
  });
});

describe("the copy", () => {
  test("has the key order of jsonb: by bytes of UTF-8, shorter first, integers before all as JavaScript has it", () => {
    const keys = ["bb", "é", "a", "B", "ﬀ", "😀", "abc", "10", "9", "zz"];
    const value = Object.fromEntries(keys.map((key) => [key, 0]));
    expect(keysOf(toJson(value, "state").value)).toEqual([
      "9",
      "10",
      "B",
      "a",
      "bb",
      "zz",
      "é",
      "abc",
      "ﬀ",
      "😀",
    ]);
  });

  test("has the same key order when there are many keys", () => {
    const keys = Array.from({ length: 200 }, (_, index) => `k${(index * 7919) % 200}`);
    const copy = toJson(Object.fromEntries(keys.map((key) => [key, 0])), "state").value;
    const expected = keys.toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1));
    expect(keysOf(copy)).toEqual(expected);
  });

  test("shares nothing with the value", () => {
    const value = { list: [{ n: 1 }] };
    const { value: copy } = toJson(value, "state");
    value.list[0]!.n = 2;
    expect(copy).toEqual({ list: [{ n: 1 }] });
  });

  test("leaves out undefined members; undefined alone is null", () => {
    expect(toJson({ a: undefined, b: 1 }, "state")).toEqual({ value: { b: 1 }, text: '{"b":1}' });
    expect(toJson(undefined, "result")).toEqual({ value: null, text: "null" });
  });

  test("has a Date as its ISO string and honours toJSON as JSON.stringify does", () => {
    const at = new Date("2024-02-29T12:00:00.000Z");
    expect(toJson({ at }, "state").value).toEqual({ at: "2024-02-29T12:00:00.000Z" });
    const url = new URL("https://example.com/a?b=c");
    expect(toJson([url], "state").value).toEqual(["https://example.com/a?b=c"]);
    const keyed = { toJSON: (key: string) => `was at ${key}` };
    expect(toJson({ here: keyed, list: [keyed] }, "state").value).toEqual({
      here: "was at here",
      list: ["was at 0"],
    });
    const itself = {
      n: 1,
      toJSON() {
        return { ...this, toJSON: undefined, m: 2 };
      },
    };
    expect(toJson(itself, "state").value).toEqual({ n: 1, m: 2 });
  });

  test("has an instance of a class as its own enumerable members", () => {
    class Point {
      x = 1;
      y = 2;
      get length() {
        return Math.hypot(this.x, this.y);
      }
    }
    expect(toJson(new Point(), "state").value).toStrictEqual({ x: 1, y: 2 });
  });

  test("keeps __proto__ as a key and nobody's prototype", () => {
    const value: unknown = JSON.parse('{"__proto__":{"polluted":true},"a":1}');
    const { value: copy, text } = toJson(value, "state");
    expect(keysOf(copy)).toEqual(["a", "__proto__"]);
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect(JSON.parse(text)).toStrictEqual(value);
    expect({}).not.toHaveProperty("polluted");
  });

  test("keeps every finite number; -0 is 0", () => {
    for (const n of [1e21, 5e-324, Number.MAX_VALUE, Number.MIN_SAFE_INTEGER, 0.1 + 0.2, -1e-7]) {
      expect(fromJson(toJson(n, "state").text)).toBe(n);
    }
    expect(Object.is(toJson(-0, "state").value, 0)).toBe(true);
  });
});

describe("a value that JSON cannot represent is refused with its path", () => {
  class Tagged {
    get [Symbol.toStringTag]() {
      return "Tagged";
    }
  }
  const circle: unknown[] = [];
  circle.push({ back: circle });
  const refused: [string, unknown, RegExp][] = [
    ["a BigInt", 1n, /BigInt/],
    ["a function", () => 1, /function/],
    ["a symbol", Symbol("s"), /symbol/],
    ["a symbol as a key", { [Symbol("s")]: 1 }, /symbol as a key, Symbol\(s\)/],
    ["NaN", Number.NaN, /NaN/],
    ["Infinity", -Infinity, /-Infinity/],
    ["NUL", "a\0b", /\\u0000/],
    ["half a surrogate pair", "a\ud83d", /surrogate/],
    ["a Map", new Map(), /Map/],
    ["a Set", new Set(), /Set/],
    ["a typed array", new Uint8Array(2), /binary data \(Uint8Array\)/],
    ["a Buffer", Buffer.from("a"), /binary data \(Buffer\)/],
    ["an ArrayBuffer", new ArrayBuffer(2), /ArrayBuffer/],
    ["an invalid Date", new Date(Number.NaN), /invalid Date/],
    ["a RegExp", /a/, /RegExp/],
    ["an Error", new Error("a"), /Error/],
    ["a WeakMap", new WeakMap(), /WeakMap/],
    ["a Promise", Promise.resolve(1), /Promise/],
    ["a boxed number", Object(1), /Number/],
    ["a boxed BigInt", Object(1n), /BigInt/],
    ["an instance that keeps its contents elsewhere", new Tagged(), /Tagged/],
    ["a toJSON that gives a Map", { toJSON: () => new Map() }, /Map/],
    ["a circle", circle, /circular: it is state\.items\[3\]\.price again/],
  ];
  for (const [name, value, message] of refused) {
    test(name, () => {
      const error = refusal({ items: [1, 2, 3, { price: value }] });
      expect(error.path).toMatch(/^state\.items\[3\]\.price/);
      expect(error.message).toMatch(message);
      expect(error.message.startsWith(error.path)).toBe(true);
    });
  }

  test("undefined or a hole in an array", () => {
    expect(refusal({ list: [1, undefined] }).path).toBe("state.list[1]");
    // oxlint-disable-next-line no-sparse-arrays
    expect(refusal([1, , 3]).path).toBe("state[1]");
    expect(refusal(Array.from({ length: 3 })).path).toBe("state[0]");
  });

  test("NUL and half a surrogate pair in a key", () => {
    expect(refusal({ a: { "b\0": 1 } }).message).toBe(
      'state.a["b\\u0000"] has the character \\u0000 in its name',
    );
    expect(refusal({ "\udc00": 1 }).message).toMatch(/half of a surrogate pair in its name/);
  });

  test("more than 100 levels, and not 100", () => {
    expect(toJson(nest(100), "state").text).toHaveLength(100 * 2 + 50 * 4 + 1);
    expect(refusal(nest(101)).message).toMatch(/more than 100 levels/);
  });

  test("the value itself, without a path behind its name", () => {
    expect(refusal(1n, "result").message).toBe("result is a BigInt (1n); store it as a string");
  });

  test("a value that throws when it is read, with the cause", () => {
    const cause = new Error("no");
    const value = {
      list: [
        { fine: 1 },
        {
          get bad() {
            throw cause;
          },
        },
      ],
    };
    expect(refusal(value)).toMatchObject({ path: "state.list[1].bad", cause });
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(refusal({ list: [{ a: { b: 1 } }, proxy] }).path).toBe("state.list[1]");
  });
});

describe("a value that is too large", () => {
  test("is refused by the bytes of its text, naming size and limit", () => {
    const limit = 1000;
    expect(toJson("x".repeat(998), "state", limit).text).toHaveLength(limit);
    expect(() => toJson("x".repeat(999), "state", limit)).toThrow(
      new PayloadTooLarge("state is 1001 bytes long as JSON; the limit is 1000 bytes"),
    );
    expect(() => toJson("é".repeat(500), "input", limit)).toThrow(PayloadTooLarge);
    expect(() => toJson("\n".repeat(500), "input", limit)).toThrow(PayloadTooLarge);
  });

  test("may be 1 MiB by default", () => {
    expect(toJson("x".repeat(1024 * 1024 - 2), "state").text).toHaveLength(1024 * 1024);
    expect(() => toJson("x".repeat(1024 * 1024 - 1), "state")).toThrow(PayloadTooLarge);
  });

  test("is refused early, when it is a small graph that would be an immense text", () => {
    let value: unknown = [1];
    for (let level = 0; level < 60; level++) value = [value, value];
    expect(() => toJson(value, "state")).toThrow(PayloadTooLarge);
  });

  test("is called circular when it is", () => {
    const wide: unknown[] = Array.from({ length: 500 }, () => "a long text to fill the room");
    wide.push(wide);
    expect(() => toJson(wide, "state", 50_000)).toThrow("state[500] is circular: it is state again");
  });

  test("is measured never too large: a text within the limit is never refused", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const { text } = toJson(value, "state");
        // Numbers with an exponent are longer when they are stored.
        fc.pre(!/\de[+-]?\d/.test(text));
        expect(toJson(value, "state", Buffer.byteLength(text)).text).toBe(text);
      }),
    );
  });
});
