import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { InvalidOption } from "../../dist/values/errors.js";
import { backoffMs, checkRetries, type RetryPolicy } from "../../dist/define/retry.js";

const policies = fc.record({
  attempts: fc.integer({ min: 1, max: 1_000_000 }),
  kind: fc.constantFrom("fixed", "linear", "exp"),
  baseMs: fc.integer({ min: 0, max: 10_000_000 }),
  maxMs: fc.integer({ min: 0, max: 10_000_000 }),
  jitter: fc.double({ min: 0, max: 1, noNaN: true }),
}) satisfies fc.Arbitrary<RetryPolicy>;
const attempts = fc.integer({ min: 0, max: 1_000_000 });
const chances = fc.double({ min: 0, max: 1, noNaN: true });

const exactly = (policy: Partial<RetryPolicy>): RetryPolicy => ({
  attempts: 10,
  kind: "exp",
  baseMs: 1_000,
  maxMs: 60_000,
  jitter: 0,
  ...policy,
});
const check = (given: unknown): RetryPolicy => checkRetries(given, 'step "x"');
const waits = (policy: RetryPolicy): number[] =>
  [0, 1, 2, 3, 4, 5, 6, 7].map((attempt) => backoffMs(policy, attempt, 1));

describe("the backoff", () => {
  test("fixed stays the same, linear grows by the base, exp doubles, none passes the longest", () => {
    expect(waits(exactly({ kind: "fixed" }))).toEqual(Array(8).fill(1_000));
    expect(waits(exactly({ kind: "linear", maxMs: 5_000 }))).toEqual([
      1_000, 2_000, 3_000, 4_000, 5_000, 5_000, 5_000, 5_000,
    ]);
    expect(waits(exactly({}))).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  });

  test("is always a whole number of milliseconds, from 0 to the longest", () => {
    fc.assert(
      fc.property(policies, attempts, chances, (policy, attempt, chance) => {
        const ms = backoffMs(policy, attempt, chance);
        expect(Number.isSafeInteger(ms)).toBe(true);
        expect(ms).toBeGreaterThanOrEqual(0);
        expect(ms).toBeLessThanOrEqual(policy.maxMs);
      }),
    );
  });

  test("jitter takes at most its part away, and leaves the rest", () => {
    fc.assert(
      fc.property(policies, attempts, chances, (policy, attempt, chance) => {
        const whole = backoffMs({ ...policy, jitter: 0 }, attempt, 0);
        const ms = backoffMs(policy, attempt, chance);
        expect(ms).toBeLessThanOrEqual(whole);
        expect(ms).toBeGreaterThanOrEqual(Math.floor(whole * (1 - policy.jitter)));
        expect(backoffMs(policy, attempt, 1)).toBe(whole);
      }),
    );
  });

  test("never gets shorter from one attempt to the next, but for jitter", () => {
    fc.assert(
      fc.property(policies, attempts, (policy, attempt) => {
        expect(backoffMs(policy, attempt + 1, 1)).toBeGreaterThanOrEqual(backoffMs(policy, attempt, 1));
      }),
    );
  });
});

describe("the option retry", () => {
  test("has defaults: 3 attempts, exp from 1 s to 60 s, a jitter of 20 %", () => {
    const usual = { attempts: 3, kind: "exp", baseMs: 1_000, maxMs: 60_000, jitter: 0.2 };
    expect(check(undefined)).toEqual(usual);
    expect(check({})).toEqual(usual);
    expect(check({ attempts: 7, backoff: {} })).toEqual({ ...usual, attempts: 7 });
  });

  test("takes durations; a base beyond the longest wait by default is not cut", () => {
    expect(check({ backoff: { kind: "linear", base: "2s", max: "1m", jitter: 0 } })).toEqual({
      attempts: 3,
      kind: "linear",
      baseMs: 2_000,
      maxMs: 60_000,
      jitter: 0,
    });
    const hourly = check({ backoff: { base: "1h" } });
    expect(backoffMs(hourly, 0, 1)).toBe(3_600_000);
  });

  test.each<[string, unknown, RegExp]>([
    ["a number", 3, /retry/],
    ["null", null, /retry/],
    ["an unknown member", { times: 3 }, /times/],
    ["no attempts", { attempts: 0 }, /attempts/],
    ["half an attempt", { attempts: 1.5 }, /attempts/],
    ["a backoff that is a number", { backoff: 100 }, /backoff/],
    ["an unknown member of the backoff", { backoff: { delay: 1 } }, /delay/],
    ["an unknown kind", { backoff: { kind: "exponential" } }, /kind.*fixed.*linear.*exp/],
    ["a bare numeric text", { backoff: { base: "100" } }, /base/],
    ["a negative wait", { backoff: { max: -1 } }, /max/],
    ["a negative jitter", { backoff: { jitter: -0.1 } }, /jitter/],
    ["a jitter over 1", { backoff: { jitter: 1.1 } }, /jitter/],
    ["a jitter that is no number", { backoff: { jitter: Number.NaN } }, /jitter/],
  ])("refuses %s, and says what", (_what, given, message) => {
    expect(() => check(given)).toThrow(InvalidOption);
    expect(() => check(given)).toThrow(message);
  });
});
