/**
 * Compile-time laws of `machine`. Each misuse is an error with the code and on the text that its comment says;
 * `misuse.test.ts` compiles this file without the directives and checks both.
 */

import * as v from "valibot";
import * as z from "zod";

import type { StepContext } from "../../dist/define/context.js";
import type { InputOf, OutputOf } from "../../dist/define/definition.js";
import type { Json } from "../../dist/values/json-types.js";
import { machine } from "../../dist/define/machine.js";
import { type } from "../../dist/define/schema.js";
import { signal } from "../../dist/define/signal.js";
import { type Equal, law } from "./support/law.js";

// ---- what compiles, and the types that come of it

const order = machine({
  name: "order",
  version: 2,
  queue: "orders",
  retention: "7d",
  signals: { approved: signal<{ by: string }>(), cancelled: signal() },
  state: type<{ orderId: string; chargeId?: string }>(),
  initial: "charge",
  steps: {
    async charge({ state, attempt, next, retry }) {
      if (attempt > 3) return retry(state, "10s");
      if (attempt > 2) return next("ship", state, { priority: 5, partitionKey: null });
      if (attempt > 1) return next("ship", state, { rateLimit: { name: "stripe", key: "eu" } });
      return next("ship", { ...state, chargeId: "c1" }, { rateLimit: "stripe", weight: 2 });
    },
    ship(ctx) {
      law<Equal<typeof ctx.step, "charge" | "ship">>();
      if (ctx.state.chargeId === undefined) return ctx.stop("not charged");
      if (ctx.attempt === 0) return ctx.done({ shipped: true, by: ctx.state.orderId });
      return ctx.done({ shipped: false });
    },
  },
});
law<Equal<typeof order.name, "order">>();
law<Equal<InputOf<typeof order>, { orderId: string; chargeId?: string }>>();
law<
  Equal<OutputOf<typeof order>, { readonly shipped: true; readonly by: string } | { readonly shipped: false }>
>();

const checkout = machine({
  name: "checkout",
  state: z.object({ order: z.number(), n: z.number().default(0) }),
  steps: {
    start: (ctx) => ctx.next("ship", { ...ctx.state, n: ctx.state.n + 1 }),
    ship: async (ctx) => ctx.done({ order: ctx.state.order }),
  },
  handle: (error, ctx) => {
    law<Equal<typeof error, unknown>>();
    return ctx.attempt < 5 ? ctx.retry(ctx.state, 1000 * ctx.attempt) : ctx.stop(error);
  },
});
law<Equal<InputOf<typeof checkout>, { order: number; n?: number | undefined }>>();
law<Equal<OutputOf<typeof checkout>, { readonly order: number }>>();

const withValibot = machine({
  name: "valibot",
  state: v.object({ n: v.optional(v.number(), 0) }),
  steps: { start: ({ state, done }) => done(state.n) },
});
law<Equal<InputOf<typeof withValibot>, { n?: number | undefined }>>();
law<Equal<OutputOf<typeof withValibot>, number>>();

const handled = machine({
  name: "output-of-handle",
  steps: { start: ({ done }) => done("done") },
  handle: async (_error, ctx) => ctx.done("handled"),
});
law<Equal<OutputOf<typeof handled>, "done" | "handled">>();

const endless = machine({
  name: "never-done",
  state: type<{ n: number }>(),
  steps: { start: ({ state, next }) => next("start", state) },
});
law<Equal<OutputOf<typeof endless>, never>>();

const noResult = machine({
  name: "done-without-result",
  steps: { start: async ({ done }) => done() },
});
law<Equal<OutputOf<typeof noResult>, null>>();

declare function load(): unknown;
const unknownResult = machine({
  name: "unknown-result",
  steps: { start: ({ done }) => done(load()) },
});
law<Equal<OutputOf<typeof unknownResult>, unknown>>();

// A date may be stored, comes back as text with a type alone, and may be passed on as either.
const dated = machine({
  name: "dates-with-a-type",
  state: type<{ at: Date; note: string | undefined }>(),
  steps: {
    start(ctx) {
      law<Equal<typeof ctx.state, { at: string; note?: string }>>();
      if (ctx.attempt === 1) return ctx.next("start", { ...ctx.state, at: new Date() });
      if (ctx.attempt === 2) return ctx.next("start", ctx.state);
      return ctx.done({ at: new Date(ctx.state.at) });
    },
  },
});
law<Equal<InputOf<typeof dated>, { at: Date | string; note?: string | undefined }>>();
law<Equal<OutputOf<typeof dated>, { readonly at: string }>>();

// A schema revives it on every load.
machine({
  name: "dates-with-a-schema",
  state: z.object({ at: z.coerce.date() }),
  steps: {
    start(ctx) {
      law<Equal<typeof ctx.state, { at: Date }>>();
      return ctx.next("start", { at: new Date(ctx.state.at.getTime() + 1) });
    },
  },
});

machine({
  name: "untyped",
  steps: {
    start(ctx) {
      law<Equal<typeof ctx.state, { readonly [member: string]: Json | undefined }>>();
      return ctx.next("start", { ...ctx.state, n: 1 });
    },
  },
});

const anyJson = machine({
  name: "json-in-state",
  state: type<{ data: Json; unknown: unknown; list: readonly (readonly [string, Date])[] }>(),
  steps: {
    start(ctx) {
      law<
        Equal<
          typeof ctx.state,
          { data: Json; unknown: unknown; list: readonly (readonly [string, string])[] }
        >
      >();
      return ctx.attempt === 0 ? ctx.next("start", ctx.state) : ctx.done(ctx.state.data);
    },
  },
});
law<Equal<OutputOf<typeof anyJson>, Json>>();

interface Tree {
  readonly name: string;
  readonly children: readonly Tree[];
}
machine({
  name: "recursive-state",
  state: type<Tree>(),
  steps: {
    start: (ctx) =>
      ctx.next("start", { name: ctx.state.children[0]?.children[0]?.name ?? "", children: [ctx.state] }),
  },
});

// Steps may be written elsewhere, and shared.
async function charge(ctx: StepContext<"start" | "ship", { n: number }>) {
  return ctx.next("ship", ctx.state);
}
const elsewhere = machine({
  name: "steps-from-elsewhere",
  state: type<{ n: number }>(),
  steps: { start: charge, ship: ({ state, done }) => done(state.n) },
});
law<Equal<OutputOf<typeof elsewhere>, number>>();

interface Receipt {
  readonly total: number;
  readonly lines: string[];
}
declare const receipt: Receipt;
const withInterface = machine({
  name: "interface-as-result",
  steps: { start: ({ done }) => done(receipt) },
});
law<Equal<OutputOf<typeof withInterface>, Receipt>>();

// ---- what does not

machine({
  name: "typo-in-next",
  state: type<{ n: number }>(),
  steps: {
    // @ts-expect-error TS2345 at "shipp"
    start: ({ state, next }) => next("shipp", state),
    ship: ({ done }) => done(null),
  },
});

machine({
  name: "typo-in-next-of-async-step",
  state: z.object({ n: z.number() }),
  steps: {
    async start(ctx) {
      // @ts-expect-error TS2345 at "shipp"
      return ctx.next("shipp", ctx.state);
    },
    async ship({ done }) {
      return done(null);
    },
  },
});

machine({
  name: "typo-in-handle",
  steps: { start: ({ done }) => done(null) },
  // @ts-expect-error TS2345 at "strat"
  handle: (_error, ctx) => ctx.next("strat", ctx.state),
});

machine({
  name: "wrong-initial",
  state: type<{ n: number }>(),
  // @ts-expect-error TS2322 at initial
  initial: "b",
  steps: { a: ({ done }) => done(null) },
});

// @ts-expect-error TS2345 at {
machine({ name: "missing-initial", steps: { a: ({ done }) => done(null) } });

machine({
  name: "wrong-type-in-state",
  state: type<{ n: number }>(),
  steps: {
    // @ts-expect-error TS2322 at n: "1"
    start: ({ next }) => next("start", { n: "1" }),
  },
});

machine({
  name: "missing-member-of-state",
  state: z.object({ n: z.number(), at: z.string().default("") }),
  steps: {
    // @ts-expect-error TS2741 at { n: 1 }
    start: ({ next }) => next("start", { n: 1 }),
  },
});

machine({
  name: "unknown-member-of-state",
  state: type<{ n: number }>(),
  steps: {
    // @ts-expect-error TS2353 at m:
    start: ({ retry }) => retry({ n: 1, m: 2 }, "1s"),
  },
});

machine({
  name: "wrong-delay",
  state: type<{ n: number }>(),
  steps: {
    // @ts-expect-error TS2345 at "5 fortnights"
    start: ({ state, retry }) => retry(state, "5 fortnights"),
  },
});

machine({
  name: "missing-delay",
  state: type<{ n: number }>(),
  steps: {
    // @ts-expect-error TS2554 at retry(state)
    start: ({ state, retry }) => retry(state),
  },
});

machine({
  name: "forgot-return",
  state: type<{ n: number }>(),
  steps: {
    // @ts-expect-error TS2322 at start
    start({ state, next }) {
      next("start", state);
    },
  },
});

machine({
  name: "forgot-return-in-async-step",
  steps: {
    // @ts-expect-error TS2322 at start
    async start({ state }) {
      void state;
    },
  },
});

machine({
  name: "hand-made-outcome",
  steps: {
    // @ts-expect-error TS2322 at start
    start: () => ({ kind: "done", result: 1 }),
  },
});

machine({
  name: "forgot-return-in-handle",
  steps: { start: ({ done }) => done(null) },
  // @ts-expect-error TS2322 at (_error
  handle: (_error, ctx) => void ctx.stop("no"),
});

machine({
  name: "result-that-json-cannot-carry",
  steps: {
    // @ts-expect-error TS2345 at new Map()
    start: ({ done }) => done(new Map()),
  },
});

machine({
  name: "part-of-a-result-that-json-cannot-carry",
  steps: {
    // @ts-expect-error TS2322 at total
    start: ({ done }) => done({ total: 1n }),
  },
});

machine({
  name: "state-that-json-cannot-carry",
  // @ts-expect-error TS2344 at { seen
  state: type<{ seen: Set<string> }>(),
  steps: { start: ({ done }) => done(null) },
});

machine({
  name: "not-a-schema",
  // @ts-expect-error TS2353 at n:
  state: { n: 1 },
  steps: { start: ({ done }) => done(null) },
});

machine({
  name: "unknown-option",
  // @ts-expect-error TS2353 at retries
  retries: 3,
  steps: { start: ({ done }) => done(null) },
});

machine({
  name: "unknown-option-of-next",
  state: type<{ n: number }>(),
  steps: {
    // @ts-expect-error TS2353 at delay
    start: ({ state, next }) => next("start", state, { delay: "1s" }),
  },
});

machine({
  name: "rate-limit-without-key",
  state: type<{ n: number }>(),
  steps: {
    // @ts-expect-error TS2322 at rateLimit
    start: ({ state, next }) => next("start", state, { rateLimit: { name: "stripe" } }),
  },
});

machine({
  name: "bad-retention",
  // @ts-expect-error TS2322 at retention
  retention: "30 days",
  steps: { start: ({ done }) => done(null) },
});

machine({
  name: "bad-signal",
  // @ts-expect-error TS2559 at paid
  signals: { paid: "paid" },
  steps: { start: ({ done }) => done(null) },
});

machine({
  name: "schema-that-json-cannot-carry",
  // @ts-expect-error TS2375 at state
  state: z.object({ seen: z.map(z.string(), z.string()) }),
  steps: { start: ({ done }) => done(null) },
});
