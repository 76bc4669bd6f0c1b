/**
 * Compile-time laws of machines that wait: `ctx.awaitSignal` knows the declared signals, what was received is told
 * apart by its name, `ctx.spawn` takes what `child` made. Each misuse is an error with the code and on the text that
 * its comment says; `misuse.test.ts` compiles this file without the directives and checks both.
 */

import * as z from "zod";

import { child } from "../../dist/define/child.js";
import type { ChildRun, StepContext } from "../../dist/define/context.js";
import type { InputOf, OutputOf } from "../../dist/define/definition.js";
import type { ErrorRecord } from "../../dist/values/error-record.js";
import { job } from "../../dist/define/job.js";
import type { Json } from "../../dist/values/json-types.js";
import { machine } from "../../dist/define/machine.js";
import { type } from "../../dist/define/schema.js";
import { type ReceivedSignal, signal } from "../../dist/define/signal.js";
import { type Equal, law } from "./support/law.js";

const resize = job({ name: "resize", run: async (_ctx, input: { path: string }) => input.path });

// ---- what compiles, and the types that come of it

const checkout = machine({
  name: "checkout",
  version: 1,
  queue: "checkout",
  state: z.object({ order: z.number(), n: z.number().default(0) }),
  signals: { payment_confirmed: signal<{ amount: number }>() },
  steps: {
    start: (ctx) => ctx.next("awaitPay", { ...ctx.state, n: ctx.state.n + 1 }),
    awaitPay: (ctx) => ctx.awaitSignal("payment_confirmed", "ship", ctx.state, { timeout: "1h" }),
    ship: async (ctx) => ctx.done({ order: ctx.state.order, paid: ctx.awaited[0]?.payload.amount }),
  },
  handle: (error, ctx) => (ctx.attempt < 5 ? ctx.retry(ctx.state, 1000 * ctx.attempt) : ctx.stop(error)),
});
law<Equal<InputOf<typeof checkout>, { order: number; n?: number | undefined }>>();
law<Equal<OutputOf<typeof checkout>, { readonly order: number; readonly paid?: number }>>();

const signals = {
  paid: signal<{ amount: number; at: Date; lines?: { sku: string; tags: string[] }[] }>(),
  cancelled: signal(),
  rated: signal<number>(),
  noted: signal<Json>(),
};

const several = machine({
  name: "several-signals",
  state: type<{ orderId: string }>(),
  signals,
  steps: {
    start({ state, attempt, awaitSignal }) {
      if (attempt === 1) return awaitSignal("cancelled", "decide", state, { timeout: 0, match: {} });
      if (attempt === 2) return awaitSignal("paid", "decide", state, { match: { amount: 7 } });
      if (attempt === 3) return awaitSignal("paid", "decide", state, { match: { lines: [{ sku: "a" }] } });
      if (attempt === 4) return awaitSignal("paid", "decide", state, { match: { at: new Date() } });
      if (attempt === 5) return awaitSignal("noted", "decide", state, { match: { any: { thing: 1 } } });
      return awaitSignal(["paid", "cancelled"], "decide", state, {
        match: { amount: 7 },
        timeout: undefined,
      });
    },
    decide(ctx) {
      law<Equal<typeof ctx.timedOut, boolean>>();
      law<Equal<typeof ctx.inbox, typeof ctx.awaited>>();
      for (const received of ctx.awaited) {
        law<Equal<typeof received.receivedAt, Date>>();
        law<Equal<typeof received.name, "paid" | "cancelled" | "rated" | "noted">>();
        if (received.name === "paid") {
          law<
            Equal<
              typeof received.payload,
              { amount: number; at: string; lines?: { sku: string; tags: string[] }[] }
            >
          >();
        }
        if (received.name === "cancelled")
          law<Equal<typeof received.payload, Readonly<Record<string, never>>>>();
        if (received.name === "rated") return ctx.done(received.payload);
        if (received.name === "noted") law<Equal<typeof received.payload, NonNullable<Json>>>();
      }
      return ctx.awaitSignal(["rated"], "decide", ctx.state);
    },
  },
  handle: (_error, ctx) => ctx.awaitSignal("rated", "decide", ctx.state, { timeout: "1d" }),
});
law<Equal<OutputOf<typeof several>, number>>();

machine({
  name: "signals-after-steps",
  steps: {
    start: (ctx) => ctx.awaitSignal("paid", "end", ctx.state),
    end: (ctx) => ctx.done(ctx.awaited.map((received) => received.payload.amount)),
  },
  signals: { paid: signal<{ amount: number }>() },
});

machine({
  name: "undeclared-signals",
  steps: {
    start(ctx) {
      law<Equal<typeof ctx.awaited, readonly ReceivedSignal[]>>();
      law<
        Equal<ReceivedSignal, { readonly name: string; readonly payload: Json; readonly receivedAt: Date }>
      >();
      const { name, payload } = ctx.awaited[0] ?? { name: "none", payload: null };
      if (ctx.timedOut) return ctx.done({ name, payload });
      return ctx.awaitSignal([name, "anything"], "start", ctx.state, { match: { at: { all: 1 } } });
    },
  },
});

const parent = machine({
  name: "parent",
  state: type<{ paths: string[] }>(),
  steps: {
    start: ({ state, spawn }) =>
      spawn(
        "join",
        state.paths.map((path) => child(resize, { path })),
        state,
      ),
    join(ctx) {
      law<Equal<typeof ctx.children, readonly ChildRun[]>>();
      if (ctx.attempt > 0) return ctx.spawn("join", [], ctx.state);
      if (ctx.attempt > 1)
        return ctx.spawn("join", [child(checkout, { order: 1 }), child("other")], ctx.state);
      return ctx.done(
        ctx.children.filter(({ status }) => status === "completed").map(({ output }) => output),
      );
    },
  },
});
law<Equal<OutputOf<typeof parent>, (Json | null)[]>>();
law<
  Equal<
    ChildRun,
    {
      readonly runId: string;
      readonly name: string;
      readonly status: "running" | "completed" | "failed" | "cancelled";
      readonly output: Json | null;
      readonly error: ErrorRecord | null;
      readonly created: boolean;
    }
  >
>();

// A step that is written elsewhere says which signals it knows, if its machine declares any.
async function settle(ctx: StepContext<"start", { n: number }, typeof signals>) {
  return ctx.awaitSignal("rated", "start", ctx.state);
}
function untypedSettle(ctx: StepContext<"start", { n: number }>) {
  return ctx.awaitSignal("anything", "start", ctx.state);
}
machine({ name: "typed-elsewhere", state: type<{ n: number }>(), signals, steps: { start: settle } });
machine({ name: "untyped-elsewhere", state: type<{ n: number }>(), steps: { start: untypedSettle } });

// ---- what does not

machine({
  name: "typo-in-signal",
  signals,
  steps: {
    // @ts-expect-error TS2345 at "payd"
    start: ({ state, awaitSignal }) => awaitSignal("payd", "start", state),
  },
});

machine({
  name: "typo-in-list-of-signals",
  signals,
  steps: {
    // @ts-expect-error TS2345 at ["cancelled"
    start: (ctx) => ctx.awaitSignal(["cancelled", "payd"], "start", ctx.state),
  },
});

machine({
  name: "typo-in-signal-of-handle",
  signals,
  steps: { start: ({ done }) => done(null) },
  // @ts-expect-error TS2345 at "payd"
  handle: (_error, ctx) => ctx.awaitSignal("payd", "start", ctx.state),
});

machine({
  name: "typo-in-step-after-await",
  signals,
  steps: {
    // @ts-expect-error TS2345 at "strat"
    start: (ctx) => ctx.awaitSignal("paid", "strat", ctx.state),
  },
});

machine({
  name: "typo-in-step-after-undeclared-await",
  steps: {
    async start(ctx) {
      // @ts-expect-error TS2345 at "strat"
      return ctx.awaitSignal("paid", "strat", ctx.state);
    },
  },
});

machine({
  name: "wrong-state-after-await",
  state: type<{ n: number }>(),
  signals,
  steps: {
    // @ts-expect-error TS2322 at n: "1"
    start: (ctx) => ctx.awaitSignal("paid", "start", { n: "1" }),
  },
});

machine({
  name: "await-without-state",
  signals,
  steps: {
    // @ts-expect-error TS2554 at awaitSignal("paid", "start")
    start: ({ awaitSignal }) => awaitSignal("paid", "start"),
  },
});

machine({
  name: "wrong-timeout",
  signals,
  steps: {
    // @ts-expect-error TS2322 at timeout
    start: (ctx) => ctx.awaitSignal("paid", "start", ctx.state, { timeout: "1 hour" }),
  },
});

machine({
  name: "unknown-option-of-await",
  signals,
  steps: {
    // @ts-expect-error TS2353 at deadline
    start: (ctx) => ctx.awaitSignal("paid", "start", ctx.state, { deadline: "1h" }),
  },
});

machine({
  name: "typo-in-match",
  signals,
  steps: {
    // @ts-expect-error TS2561 at ammount
    start: (ctx) => ctx.awaitSignal("paid", "start", ctx.state, { match: { ammount: 7 } }),
  },
});

machine({
  name: "wrong-type-in-match",
  signals,
  steps: {
    // @ts-expect-error TS2322 at amount
    start: (ctx) => ctx.awaitSignal("paid", "start", ctx.state, { match: { amount: "7" } }),
  },
});

machine({
  name: "match-of-a-signal-without-payload",
  signals,
  steps: {
    // @ts-expect-error TS2322 at amount
    start: (ctx) => ctx.awaitSignal("cancelled", "start", ctx.state, { match: { amount: 7 } }),
  },
});

machine({
  name: "match-of-a-plain-value",
  signals,
  steps: {
    // @ts-expect-error TS2322 at match
    start: (ctx) => ctx.awaitSignal("rated", "start", ctx.state, { match: { amount: 7 } }),
  },
});

machine({
  name: "match-that-is-no-object",
  steps: {
    // @ts-expect-error TS2322 at match
    start: (ctx) => ctx.awaitSignal("paid", "start", ctx.state, { match: 7 }),
  },
});

machine({
  name: "wrong-member-of-a-payload",
  signals: { paid: signal<{ amount: number }>() },
  steps: {
    // @ts-expect-error TS2551 at ammount
    start: (ctx) => ctx.done(ctx.awaited[0]?.payload.ammount),
  },
});

machine({
  name: "member-of-one-payload-of-several",
  signals: { paid: signal<{ amount: number }>(), noted: signal<{ note: string }>() },
  steps: {
    // @ts-expect-error TS2339 at amount
    start: (ctx) => ctx.done(ctx.awaited[0]?.payload.amount),
  },
});

machine({
  name: "member-of-the-wrong-payload",
  signals: { paid: signal<{ amount: number }>(), noted: signal<{ note: string }>() },
  steps: {
    start(ctx) {
      const received = ctx.inbox[0];
      // @ts-expect-error TS2339 at note)
      return received?.name === "paid" ? ctx.done(received.payload.note) : ctx.done(null);
    },
  },
});

machine({
  name: "date-that-comes-back-as-text",
  signals: { due: signal<{ at: Date }>() },
  steps: {
    // @ts-expect-error TS2339 at getTime
    start: (ctx) => ctx.done(ctx.awaited[0]?.payload.at.getTime()),
  },
});

machine({
  name: "comparison-with-an-unknown-signal",
  signals: { paid: signal<{ amount: number }>() },
  steps: {
    // @ts-expect-error TS2367 at received.name
    start: (ctx) => ctx.done(ctx.awaited.some((received) => received.name === "payd")),
  },
});

machine({
  name: "member-of-an-untyped-payload",
  steps: {
    // @ts-expect-error TS2339 at amount
    start: (ctx) => ctx.done(ctx.awaited[0]?.payload?.amount),
  },
});

machine({
  name: "step-from-elsewhere-with-unknown-signals",
  state: type<{ n: number }>(),
  signals,
  // @ts-expect-error TS2322 at start
  steps: { start: untypedSettle },
});

machine({
  name: "typo-in-step-after-spawn",
  steps: {
    // @ts-expect-error TS2345 at "strat"
    start: (ctx) => ctx.spawn("strat", [], ctx.state),
  },
});

machine({
  name: "wrong-state-after-spawn",
  state: type<{ n: number }>(),
  steps: {
    // @ts-expect-error TS2322 at n: "1"
    start: (ctx) => ctx.spawn("start", [], { n: "1" }),
  },
});

machine({
  name: "wrong-input-of-a-child",
  steps: {
    // @ts-expect-error TS2322 at path
    start: (ctx) => ctx.spawn("start", [child(resize, { path: 1 })], ctx.state),
  },
});

machine({
  name: "definition-as-a-child",
  steps: {
    // @ts-expect-error TS2739 at resize]
    start: (ctx) => ctx.spawn("start", [resize], ctx.state),
  },
});

machine({
  name: "one-child-without-a-list",
  steps: {
    // @ts-expect-error TS2740 at child(
    start: (ctx) => ctx.spawn("start", child(resize, { path: "a" }), ctx.state),
  },
});

machine({
  name: "unknown-status-of-a-child",
  steps: {
    // @ts-expect-error TS2367 at status ===
    start: (ctx) => ctx.done(ctx.children.every(({ status }) => status === "done")),
  },
});

// ---- children can be the result

export const reporting = machine({
  name: "reporting",
  steps: {
    start: (ctx) => ctx.spawn("report", [child(resize, { path: "a" })], ctx.state),
    report: (ctx) => ctx.done(ctx.children),
  },
});
