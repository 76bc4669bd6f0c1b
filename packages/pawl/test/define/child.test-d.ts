/**
 * Compile-time laws of `child`: it takes what `start` takes, and each misuse is an error with the code and on the
 * text that its comment says; `misuse.test.ts` compiles this file without the directives and checks both.
 */

import * as z from "zod";

import { type Child, child } from "../../dist/define/child.js";
import { job } from "../../dist/define/job.js";
import { machine } from "../../dist/define/machine.js";
import { type } from "../../dist/define/schema.js";
import { type Equal, law } from "./support/law.js";

const resize = job({ name: "resize", run: async (_ctx, input: { path: string }) => input.path });
const order = machine({
  name: "order",
  state: z.object({ id: z.string(), at: z.coerce.date<Date | string>(), n: z.number().default(0) }),
  steps: { start: ({ done }) => done("shipped") },
});
const tick = job({ name: "tick", run: async () => {} });
const perhaps = job({ name: "perhaps", input: type<number | undefined>(), run: () => null });

// ---- what compiles, and the types that come of it

const made = child(resize, { path: "a.png" });
law<Equal<typeof made, Child>>();
law<Equal<typeof made.input, unknown>>();

const mixed: readonly Child[] = [
  made,
  child(resize, { path: "b.png" }, { priority: -1, delay: "5m", uniqueKey: "b", uniqueScope: ["runnable"] }),
  child(resize, { path: "c.png" }, { partitionKey: "c", rateLimit: "stripe", weight: 2 }),
  child(resize, { path: "d.png" }, { rateLimit: { name: "stripe", key: "eu" }, partitionKey: undefined }),
  child(order, { id: "o", at: new Date() }, { step: "start" }),
  child(order, { id: "o", at: "2030-01-31", n: 1 }),
  child(tick),
  child(perhaps),
  child(perhaps, 1),
  child("by-name"),
  child("by-name", { anything: true }, { queue: "other" }),
];
void mixed;

// ---- what does not

// @ts-expect-error TS2322 at path
child(resize, { path: 1 });

// @ts-expect-error TS2353 at file
child(resize, { file: "a.png" });

// @ts-expect-error TS2554 at child(resize)
child(resize);

// @ts-expect-error TS2345 at null
child(resize, null);

// @ts-expect-error TS2741 at { id
child(order, { id: "o" });

// @ts-expect-error TS2345 at { name
child({ name: "resize" }, { path: "a.png" });

// @ts-expect-error TS2345 at 7
child(7);

// @ts-expect-error TS2345 at async
child(async () => null, {});

// @ts-expect-error TS2561 at dely
child(resize, { path: "a.png" }, { dely: "5m" });

// @ts-expect-error TS2322 at delay
child(resize, { path: "a.png" }, { delay: "5 fortnights" });

// @ts-expect-error TS2322 at "running"
child(resize, { path: "a.png" }, { uniqueKey: "a", uniqueScope: ["running"] });

// @ts-expect-error TS2322 at partitionKey
child(resize, { path: "a.png" }, { partitionKey: null });

// @ts-expect-error TS2322 at rateLimit
child(resize, { path: "a.png" }, { rateLimit: 5 });

// @ts-expect-error TS2322 at rateLimit
child(resize, { path: "a.png" }, { rateLimit: { name: "stripe" } });

// @ts-expect-error TS2741 at mine
const mine: Child = { target: resize, input: { path: "a.png" }, options: {} };
void mine;
