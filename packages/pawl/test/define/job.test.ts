import { describe, expect, test } from "vitest";
import * as z from "zod";

import { InvalidOption } from "../../dist/values/errors.js";
import { job } from "../../dist/define/job.js";
import { type } from "../../dist/define/schema.js";
import { signal } from "../../dist/define/signal.js";
import { untyped } from "./support/untyped.js";

const run = () => null;
const untypedJob = untyped(job);

describe("a job", () => {
  test("is frozen data with every default filled in", () => {
    const definition = job({ name: "resize", run });
    expect(Object.isFrozen(definition)).toBe(true);
    expect(definition).toMatchObject({
      kind: "job",
      name: "resize",
      version: 1,
      queue: "default",
      priority: 0,
      retentionMs: 30 * 86_400_000,
      maxCrashes: null,
      maxAttempts: 20,
      input: undefined,
      output: undefined,
      run,
    });
  });

  test("waits 1 s, doubled with every attempt, at most 5 min, unless it says otherwise", () => {
    const { backoff } = job({ name: "resize", run });
    expect([0, 1, 2, 8, 9, 2000].map(backoff)).toEqual([1000, 2000, 4000, 256_000, 300_000, 300_000]);
    expect(job({ name: "resize", run, backoff: () => "1s" }).backoff(3)).toBe("1s");
  });

  test("keeps its options", () => {
    const input = z.object({ n: z.number() });
    const output = z.null();
    expect(
      job({
        name: "resize",
        version: 3,
        queue: "images",
        priority: -1,
        retention: "1d",
        maxCrashes: 0,
        maxAttempts: 1,
        signals: { stop: signal() },
        input,
        output,
        run,
      }),
    ).toMatchObject({
      version: 3,
      queue: "images",
      priority: -1,
      retentionMs: 86_400_000,
      maxCrashes: 0,
      maxAttempts: 1,
      input,
      output,
    });
    expect(job({ name: "resize", input: type<{ n: number }>(), run }).input).toBeUndefined();
  });

  test("takes an option given as undefined for one left out", () => {
    expect(
      untypedJob({ name: "a", run, version: undefined, maxAttempts: undefined, retention: undefined }),
    ).toEqual(job({ name: "a", run }));
  });
});

describe("a job is refused where it is defined", () => {
  const refused: [unknown, RegExp][] = [
    [undefined, /^the options of job must be an object, not undefined/],
    [{ run }, /^the name of a definition must be .*, not undefined/],
    [{ name: "Resize", run }, /^the name of a definition must be .*, not "Resize"/],
    [{ name: "a" }, /^run must be a function, not undefined/],
    [{ name: "a", run: "b" }, /^run must be a function, not "b"/],
    [
      { name: "a", run, maxAttempt: 3 },
      /^unknown option "maxAttempt" .*; allowed: .*; did you mean "maxAttempts"\?$/,
    ],
    [{ name: "a", run, version: 0 }, /^version must be/],
    [{ name: "a", run, queue: "My Queue" }, /^the name of a queue must be/],
    [{ name: "a", run, priority: 32_768 }, /^priority must be/],
    [{ name: "a", run, retention: "30 days" }, /^retention must be a duration/],
    [{ name: "a", run, maxCrashes: -1 }, /^maxCrashes must be/],
    [{ name: "a", run, maxAttempts: 0 }, /^maxAttempts must be/],
    [{ name: "a", run, backoff: 1000 }, /^backoff must be a function/],
    [{ name: "a", run, input: {} }, /^input must be a schema/],
    [{ name: "a", run, output: {} }, /^output must be a schema/],
    [{ name: "a", run, signals: [] }, /^signals must be an object/],
    [{ name: "a", run, signals: { "a b": signal() } }, /^the name of a signal must be/],
    [{ name: "a", run, signals: { paid: {} } }, /^signal "paid" must be declared by signal<Payload>\(\)/],
  ];
  for (const [options, message] of refused) {
    test(String(message), () => {
      expect(() => untypedJob(options)).toThrow(InvalidOption);
      expect(() => untypedJob(options)).toThrow(message);
    });
  }
});
