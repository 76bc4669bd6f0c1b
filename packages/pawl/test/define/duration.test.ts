import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { toMilliseconds } from "../../dist/values/duration.js";
import { InvalidOption } from "../../dist/values/errors.js";
import { show } from "../../dist/values/show.js";

describe("a duration", () => {
  test("is a number of milliseconds or a number with a unit", () => {
    const durations: [unknown, number][] = [
      [0, 0],
      [1500, 1500],
      ["0ms", 0],
      ["250ms", 250],
      ["1.5s", 1500],
      ["30s", 30_000],
      ["5m", 300_000],
      ["1h", 3_600_000],
      ["30d", 2_592_000_000],
      ["2w", 1_209_600_000],
    ];
    for (const [given, ms] of durations) expect(toMilliseconds(given, "delay")).toBe(ms);
  });

  test("is rounded to whole milliseconds", () => {
    expect(toMilliseconds(1.4, "delay")).toBe(1);
    expect(toMilliseconds("0.0016s", "delay")).toBe(2);
    expect(toMilliseconds("1.1s", "delay")).toBe(1100);
  });

  test("is the same in every unit that can express it", () => {
    fc.assert(
      fc.property(fc.nat({ max: 10_000 }), (days) => {
        expect(toMilliseconds(`${days}d`, "delay")).toBe(toMilliseconds(days * 86_400_000, "delay"));
        expect(toMilliseconds(`${days * 24}h`, "delay")).toBe(toMilliseconds(`${days}d`, "delay"));
      }),
    );
  });

  test("is at most 100 years", () => {
    expect(toMilliseconds("36525d", "delay")).toBe(36_525 * 86_400_000);
    expect(() => toMilliseconds("36526d", "delay")).toThrow(/at most 100 years/);
    expect(() => toMilliseconds(Infinity, "delay")).toThrow(InvalidOption);
  });
});

describe("a wrong duration is refused, with the given value and the rule", () => {
  const texts =
    " |5|5 s| 5s|5s |-5s|+5s|1e3s|.5s|5.s|5S|5min|0x5s|1_000ms|s|٣s|5s\n|Infinitys|NaNms|1h30m".split("|");
  const others = [-1, -0.6, Number.NaN, -Infinity, null, undefined, true, 5n, {}, [], ["5s"], Symbol("5s")];
  const refused = [...texts, "", `${"9".repeat(400)}s`, ...others];
  for (const given of refused) {
    test(show(given, 40), () => {
      expect(() => toMilliseconds(given, "timeout of the await")).toThrow(InvalidOption);
      expect(() => toMilliseconds(given, "timeout of the await")).toThrow(
        /^timeout of the await must be a duration/,
      );
      expect(() => toMilliseconds(given, "timeout of the await")).toThrow(/ms, s, m, h, d, w.*; not /);
    });
  }
});
