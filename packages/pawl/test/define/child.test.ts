import { describe, expect, test } from "vitest";

import { child, isChild } from "../../dist/define/child.js";
import { InvalidOption } from "../../dist/values/errors.js";
import { job } from "../../dist/define/job.js";
import { untyped } from "./support/untyped.js";

const resize = job({ name: "resize", run: async (_ctx, input: { path: string }) => input.path });
const untypedChild = untyped(child);

describe("a child", () => {
  test("is frozen data: the target, its input and its options", () => {
    const input = { path: "a.png" };
    const made = child(resize, input, { priority: 5 });
    expect(made).toMatchObject({ target: resize, input, options: { priority: 5 } });
    expect(Object.isFrozen(made)).toBe(true);
    expect(child("resize")).toMatchObject({ target: "resize", input: undefined, options: {} });
  });

  test("is known by its mark, and by nothing that can be copied through JSON", () => {
    const made = child("resize", { path: "a.png" });
    expect(isChild(made)).toBe(true);
    for (const other of [
      { target: "resize", input: {}, options: {} },
      JSON.parse(JSON.stringify(made)),
      resize,
    ]) {
      expect(isChild(other)).toBe(false);
    }
    for (const other of [undefined, null, "resize", 7, () => made, [made]])
      expect(isChild(other)).toBe(false);
  });

  test("is not mistaken for an object that throws when it is read", () => {
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error("looked at");
        },
      },
    );
    expect(isChild(hostile)).toBe(false);
  });
});

describe("a child without a definition is refused, with the given value", () => {
  const refused: [unknown, RegExp][] = [
    [
      undefined,
      /^child takes a definition made by job\(…\), machine\(…\) or workflow\(…\), or its name, not undefined$/,
    ],
    [null, /not null$/],
    [{ name: "resize" }, /not { name: "resize" }$/],
    [[resize], /^child takes a definition/],
    [job, /not function job$/],
    ["Not A Name", /^the name of a definition must be 1 to 48 characters .*, not "Not A Name"$/],
  ];
  for (const [target, message] of refused) {
    test(String(message), () => {
      expect(() => untypedChild(target, {})).toThrow(InvalidOption);
      expect(() => untypedChild(target, {})).toThrow(message);
    });
  }
});
