/**
 * Compile-time laws of batch jobs. Each misuse is an error with the code and on the text that its comment says;
 * `misuse.test.ts` compiles this file without the directives and checks both.
 */

import * as z from "zod";

import type { BatchContext, BatchItem } from "../../dist/define/batch.js";
import type { InputOf, OutputOf } from "../../dist/define/definition.js";
import { job } from "../../dist/define/job.js";
import { machine } from "../../dist/define/machine.js";
import { workflow } from "../../dist/define/workflow.js";
import { type } from "../../dist/define/schema.js";
import { type Equal, law } from "./support/law.js";

// ---- what compiles, and the types that come of it

const oneForAll = job({
  name: "one-for-all",
  input: z.object({ to: z.string(), copies: z.number().default(1) }),
  batch: { size: 100, wait: "1s" },
  async run(ctx, items) {
    law<Equal<typeof ctx, BatchContext>>();
    law<Equal<typeof items, readonly BatchItem<{ to: string; copies: number }>[]>>();
    return { sent: items.length, at: new Date() };
  },
});
law<Equal<InputOf<typeof oneForAll>, { to: string; copies?: number | undefined }>>();
law<Equal<OutputOf<typeof oneForAll>, { sent: number; at: string }>>();

const onePerItem = job({
  name: "one-per-item",
  input: type<{ n: number }>(),
  batch: { size: 10 },
  run: (ctx, items) =>
    items.map(({ input }) => (input.n > 0 ? { half: input.n / 2 } : ctx.fail(new Error("too small")))),
});
law<Equal<InputOf<typeof onePerItem>, { n: number }>>();
law<Equal<OutputOf<typeof onePerItem>, { half: number }>>();

const annotated = job({
  name: "annotated",
  batch: { size: 10 },
  run: async (_ctx, items: readonly BatchItem<{ n: number }>[]) => items.map(({ input }) => input.n),
});
law<Equal<InputOf<typeof annotated>, { n: number }>>();
law<Equal<OutputOf<typeof annotated>, number>>();

const withoutResults = job({
  name: "without-results",
  batch: { size: 10 },
  run: async (_ctx, items) => Promise.all(items.map(async ({ runId }) => void runId)),
});
law<Equal<InputOf<typeof withoutResults>, unknown>>();
law<Equal<OutputOf<typeof withoutResults>, null>>();

const nothing = job({ name: "nothing", batch: { size: 10 }, run: () => {} });
law<Equal<OutputOf<typeof nothing>, null>>();

const withOutput = job({
  name: "output",
  batch: { size: 10 },
  output: z.object({ n: z.number().default(0) }),
  run: async (ctx, items) => items.map(({ attempt }) => (attempt > 3 ? ctx.fail("late") : {})),
});
law<Equal<OutputOf<typeof withOutput>, { n: number }>>();

// ---- what does not

job({
  name: "result-that-json-cannot-carry",
  batch: { size: 10 },
  // @ts-expect-error TS2322 at run
  run: async (_ctx, items) => items.map(() => new Set<string>()),
});

job({
  name: "result-that-its-schema-does-not-take",
  batch: { size: 10 },
  output: z.object({ n: z.number() }),
  // @ts-expect-error TS2322 at run
  run: (_ctx, items) => items.map(() => ({ n: "1" })),
});

job({
  name: "input-that-is-not-of-its-schema",
  batch: { size: 10 },
  // @ts-expect-error TS2322 at input
  input: z.object({ n: z.number() }),
  run: (_ctx, items: readonly BatchItem<{ m: number }>[]) => items.map(({ input }) => input.m),
});

job({
  name: "transaction-in-a-batch",
  batch: { size: 10 },
  // @ts-expect-error TS2339 at transaction
  run: (ctx) => ctx.transaction(async () => null),
});

job({
  name: "one-run-in-a-batch",
  batch: { size: 10 },
  // @ts-expect-error TS2339 at runId
  run: (ctx) => ctx.runId,
});

job({
  name: "fail-without-a-batch",
  // @ts-expect-error TS2339 at fail
  run: (ctx) => ctx.fail("no"),
});

job({
  name: "typo-in-batch",
  // @ts-expect-error TS2322 at length
  batch: { size: 10, length: 3 },
  run: () => null,
});

job({
  name: "no-size",
  // @ts-expect-error TS2322 at batch
  batch: { wait: "1s" },
  run: () => null,
});

machine({
  name: "machine-in-batches",
  // @ts-expect-error TS2353 at batch
  batch: { size: 10 },
  steps: { start: (ctx) => ctx.done() },
});

workflow({
  name: "workflow-in-batches",
  // @ts-expect-error TS2353 at batch
  batch: { size: 10 },
  run: async () => null,
});
