/**
 * Compile-time laws of `workflow`. Each misuse is an error with the code and on the text that its comment says;
 * `misuse.test.ts` compiles this file without the directives and checks both.
 */

import * as z from "zod";

import type { Pawl } from "../../dist/api/pawl.js";
import type { InputOf, OutputOf, RunId } from "../../dist/define/definition.js";
import { job } from "../../dist/define/job.js";
import type { Json } from "../../dist/values/json-types.js";
import { machine } from "../../dist/define/machine.js";
import { type } from "../../dist/define/schema.js";
import { signal } from "../../dist/define/signal.js";
import { workflow } from "../../dist/define/workflow.js";
import { type Equal, law } from "./support/law.js";

// ---- what compiles, and the types that come of it

const child = job({ name: "child", run: (_ctx, input: { n: number }) => ({ n: input.n, at: new Date() }) });
const counter = machine({
  name: "counter",
  state: z.object({ n: z.number().default(0) }),
  steps: { start: (ctx) => ctx.done({ n: ctx.state.n }) },
});
const nothing = workflow({ name: "nothing", run: async () => {} });

const annotated = workflow({
  name: "annotated",
  run: async ({ step, runId, version, signal: aborted }, input: { email: string }) => {
    law<Equal<[typeof runId, typeof version, typeof aborted], [string, number, AbortSignal]>>();
    const user = await step.run("user", async () => ({
      id: 1,
      at: new Date(),
      tag: undefined as string | undefined,
    }));
    law<Equal<typeof user, { id: number; at: string; tag?: string }>>();
    const plain = await step.run("plain", () => input.email);
    law<Equal<typeof plain, string>>();
    const none = await step.run("none", () => {});
    law<Equal<typeof none, null>>();
    const attempt = await step.run("attempt", (own) => (own.signal.aborted ? null : own.attempt));
    law<Equal<typeof attempt, number | null>>();
    const slept = await step.sleep("nap", "5m");
    law<Equal<typeof slept, void>>();
    await step.sleep("until", new Date());
    return { user: user.id, email: plain, at: new Date() };
  },
});
law<Equal<typeof annotated.name, "annotated">>();
law<Equal<InputOf<typeof annotated>, { email: string }>>();
law<Equal<OutputOf<typeof annotated>, { user: number; email: string; at: string }>>();

const withZod = workflow({
  name: "zod",
  input: z.object({ n: z.number().default(1), at: z.coerce.date<Date | string>() }),
  output: z.object({ m: z.number().default(0) }),
  run: async (_ctx, input) => {
    law<Equal<typeof input, { n: number; at: Date }>>();
    return {};
  },
});
law<Equal<InputOf<typeof withZod>, { n?: number | undefined; at: Date | string }>>();
law<Equal<OutputOf<typeof withZod>, { m: number }>>();

const withType = workflow({
  name: "type",
  input: type<{ at: Date }>(),
  run: async (_ctx, input) => {
    law<Equal<typeof input, { at: string }>>();
    return input.at;
  },
});
law<Equal<InputOf<typeof withType>, { at: Date | string }>>();
law<Equal<OutputOf<typeof nothing>, null>>();

const undeclared = workflow({
  name: "undeclared",
  run: async ({ step }) => {
    const payload = await step.waitForEvent("anything");
    law<Equal<typeof payload, Json>>();
    const timed = await step.waitForEvent("timed", { timeout: "1h", match: { any: { thing: 1 } } });
    law<Equal<typeof timed, Json>>();
  },
});
law<Equal<OutputOf<typeof undeclared>, null>>();

const declared = workflow({
  name: "declared",
  signals: {
    paid: signal<{ amount: number; at: Date; by: { id: number } }>(),
    left: signal<{ why: string }>(),
  },
  run: async ({ step }) => {
    const paid = await step.waitForEvent("paid");
    law<Equal<typeof paid, { amount: number; at: string; by: { id: number } }>>();
    const timed = await step.waitForEvent("again", {
      event: "paid",
      timeout: 1_000,
      match: { by: { id: 1 } },
    });
    law<Equal<typeof timed, { amount: number; at: string; by: { id: number } } | null>>();
    const left = await step.waitForEvent("left", { match: { why: "bored" } });
    law<Equal<typeof left, { why: string }>>();
    const never = await step.waitForEvent("paid", { timeout: undefined });
    law<Equal<typeof never, { amount: number; at: string; by: { id: number } }>>();
    return left.why;
  },
});

workflow({
  name: "invoking",
  run: async ({ step }) => {
    const one = await step.invoke("one", child, { n: 1 }, { priority: 1 });
    law<Equal<typeof one, { n: number; at: string }>>();
    const two = await step.invoke("two", counter, {});
    law<Equal<typeof two, { readonly n: number }>>();
    const three = await step.invoke("three", annotated, { email: "a" });
    law<Equal<typeof three, { user: number; email: string; at: string }>>();
    const four = await step.invoke("four", nothing);
    law<Equal<typeof four, null>>();
    const five = await step.invoke("five", "by-name", { any: "thing" });
    law<Equal<typeof five, unknown>>();
    return [one, two, three];
  },
});

declare const pawl: Pawl;
declare const runId: RunId<typeof declared>;
void pawl.signal(runId, "paid", { amount: 1, at: new Date(), by: { id: 1 } });
void pawl.result(runId).then((result) => law<Equal<typeof result, string>>());

// ---- what does not

workflow({
  name: "result-that-json-cannot-carry",
  // @ts-expect-error TS2322 at run
  run: async () => new Map<string, string>(),
});

workflow({
  name: "not-async",
  // @ts-expect-error TS2322 at 1
  run: () => 1,
});

workflow({
  name: "result-that-its-schema-does-not-take",
  output: z.object({ n: z.number() }),
  // @ts-expect-error TS2322 at ({ n: "1" })
  run: async () => ({ n: "1" }),
});

workflow({
  name: "step-that-json-cannot-carry",
  run: async ({ step }) => {
    // @ts-expect-error TS2345 at () => new Set
    await step.run("set", () => new Set([1]));
    // @ts-expect-error TS2345 at async () => ({ n: 1n })
    await step.run("big", async () => ({ n: 1n }));
  },
});

workflow({
  name: "what-comes-back-is-json",
  run: async ({ step }) => {
    const { at } = await step.run("date", () => ({ at: new Date() }));
    // @ts-expect-error TS2339 at getTime
    return at.getTime();
  },
});

workflow({
  name: "bad-options",
  run: async ({ step }) => {
    // @ts-expect-error TS2353 at retries
    await step.run("a", () => 1, { retries: 3 });
    // @ts-expect-error TS2322 at kind
    await step.run("b", () => 1, { retry: { backoff: { kind: "log" } } });
    // @ts-expect-error TS2345 at "soon"
    await step.sleep("c", "soon");
    // @ts-expect-error TS2322 at timeout
    await step.waitForEvent("d", { timeout: "1y" });
  },
});

workflow({
  name: "wrong-input-of-a-child",
  run: async ({ step }) => {
    // @ts-expect-error TS2322 at n: "1"
    await step.invoke("a", child, { n: "1" });
    // @ts-expect-error TS2554 at invoke
    await step.invoke("b", child);
    // @ts-expect-error TS2353 at m: 1
    await step.invoke("c", counter, { m: 1 });
  },
});

workflow({
  name: "undeclared-event",
  signals: { paid: signal<{ amount: number }>() },
  run: async ({ step }) => {
    // @ts-expect-error TS2345 at "payed"
    await step.waitForEvent("payed");
    // @ts-expect-error TS2322 at event
    await step.waitForEvent("wait", { event: "payed" });
    // @ts-expect-error TS2322 at amount
    await step.waitForEvent("paid", { match: { amount: "1" } });
    // @ts-expect-error TS2322 at amount
    await step.waitForEvent("wait-2", { event: "paid", match: { amount: "1" } });
    const timed = await step.waitForEvent("paid", { timeout: "1h" });
    // @ts-expect-error TS18047 at timed
    return timed.amount;
  },
});

// @ts-expect-error TS2345 at "payed"
void pawl.signal(runId, "payed", { amount: 1, at: new Date(), by: { id: 1 } });
// @ts-expect-error TS2322 at amount
void pawl.signal(runId, "paid", { amount: "1", at: new Date(), by: { id: 1 } });

workflow({
  name: "unknown-option",
  // @ts-expect-error TS2353 at steps
  steps: {},
  run: async () => null,
});

// @ts-expect-error TS2345 at {
workflow({ name: "no-run" });
