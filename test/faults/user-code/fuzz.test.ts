/** Whatever the public API is given, and whatever user code gives back: an answer or an error of Pawl, never a hang, a crash or a stuck run. */

import fc from "fast-check";
import { job, machine, PawlError, type as typeOf, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { anything } from "../../../packages/pawl/test/dist/define/support/anything.js";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

/** What comes out of the bag of the present case, by its number: no JSON could carry it. */
const bag = new Map<number, unknown>();
let cases = 0;

const give = ({ n, throws }: { n: number; throws: boolean }): unknown => {
  if (!throws) return bag.get(n);
  throw bag.get(n) as Error;
};
const giving = typeOf<{ n: number; throws: boolean }>();
const definitions = [
  job({
    name: "fuzz-job",
    maxAttempts: 2,
    backoff: () => 1,
    run: (_ctx, given: never) => give(given) as never,
  }),
  machine({ name: "fuzz-machine", state: giving, steps: { start: (ctx) => give(ctx.state) as never } }),
  workflow({
    name: "fuzz-workflow",
    run: async ({ step }, given: never) =>
      step.run("give", () => give(given) as never, { retry: { attempts: 1 } }),
  }),
] as const;
await serve(definitions, { maxStepDuration: "2s" });

const texts = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "\u0000", "__proto__", "a".repeat(600)),
);
const wild = fc.oneof(anything, texts);
const names = fc.oneof(fc.constantFrom("fuzz-job", "64", "item"), wild);
const optionNames =
  "queue priority partitionKey delay at idempotencyKey uniqueKey uniqueScope retention rateLimit weight step timeout limit cursor status dedupKey reason __proto__".split(
    " ",
  );
const options = fc.oneof(fc.dictionary(fc.constantFrom(...optionNames), wild), wild);

type Call = (one: never, other: never, more: never) => unknown;
const calls: Readonly<Record<string, Call>> = {
  start: (name, input, given) => pawl.start(name, input, given),
  startMany: (name, items) => pawl.startMany(name, items),
  signal: (runId, name, payload) => pawl.signal(runId, name, payload),
  "signal with options": (runId, payload, given) => pawl.signal(runId, "item", payload, given),
  result: (runId) => pawl.result(runId, { timeout: 1 }),
  "result with options": (_runId, _other, given) => pawl.result("6400000000", given),
  "runs.get": (runId) => pawl.runs.get(runId),
  "runs.list": (_one, _other, given) => pawl.runs.list(given),
  "runs.steps": (runId) => pawl.runs.steps(runId),
  "runs.cancel": (runId, _other, given) => pawl.runs.cancel(runId, given),
  "limits.set": (name, _other, given) => pawl.limits.set(name, given),
  why: (runId) => pawl.why(runId),
  check: (given) => pawl.check(given),
  within: (given, name, input) => pawl.within(given).start(name, input),
};

describe("whatever it is given", () => {
  it.each(Object.keys(calls))(
    "%s answers, or throws an error of Pawl",
    async (name) => {
      await fc.assert(
        fc.asyncProperty(names, wild, options, async (one, other, given) => {
          try {
            await calls[name]!(one as never, other as never, given as never);
          } catch (error) {
            if (!(error instanceof PawlError)) throw error;
          }
        }),
        { numRuns: 150 },
      );
    },
    60_000,
  );
});

describe("whatever user code gives back or throws", () => {
  it.each(definitions.map(({ name }) => name))(
    "a run of %s ends",
    async (name) => {
      await fc.assert(
        fc.asyncProperty(wild, fc.boolean(), async (value, throws) => {
          const n = cases++;
          bag.set(n, value);
          const { runId } = await pawl.start(name, { n, throws });
          const failure = await pawl.result(runId, { timeout: "20s" }).then(
            () => null,
            (error: unknown) => error as PawlError,
          );
          bag.delete(n);
          if (throws) expect(failure?.code).toBe("RunFailed");
          else expect([undefined, "RunFailed"]).toContain(failure?.code);
        }),
        { numRuns: 150 },
      );
    },
    90_000,
  );
});

it("what would pollute prototypes is data like any other, or refused", async () => {
  const echo = job({ name: "echo", run: (_ctx, input: { [name: string]: string }) => input });
  await serve([echo]);
  const hostile = '{"__proto__":{"polluted":"yes"},"constructor":{"prototype":{"polluted":"yes"}},"a":"b"}';
  const outcome = await pawl
    .start(echo, JSON.parse(hostile))
    .then(({ runId }) => pawl.result(runId, { timeout: "20s" }))
    .catch((error: unknown) => error);
  if (!(outcome instanceof PawlError)) {
    expect(Object.getPrototypeOf(outcome)).toBe(Object.prototype);
    expect(JSON.parse(JSON.stringify(outcome))).toEqual(JSON.parse(hostile));
  }
  expect(({} as { polluted?: string }).polluted).toBeUndefined();
  expect("polluted" in Object.prototype).toBe(false);
});
