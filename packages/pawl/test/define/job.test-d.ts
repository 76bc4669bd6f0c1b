/**
 * Compile-time laws of `job`. Each misuse is an error with the code and on the text that its comment says;
 * `misuse.test.ts` compiles this file without the directives and checks both.
 */

import * as v from "valibot";
import * as z from "zod";

import type { InputOf, OutputOf } from "../../dist/define/definition.js";
import { job } from "../../dist/define/job.js";
import { type } from "../../dist/define/schema.js";
import { type Equal, law } from "./support/law.js";

// ---- what compiles, and the types that come of it

const annotated = job({
  name: "annotated",
  maxAttempts: 3,
  backoff: (attempt) => `${attempt + 1}s`,
  async run(ctx, input: { path: string }) {
    law<Equal<typeof ctx.attempt, number>>();
    return { bytes: input.path.length, at: new Date() };
  },
});
law<Equal<typeof annotated.name, "annotated">>();
law<Equal<InputOf<typeof annotated>, { path: string }>>();
law<Equal<OutputOf<typeof annotated>, { bytes: number; at: string }>>();

const withZod = job({
  name: "zod",
  input: z.object({ path: z.string(), width: z.number().default(100) }),
  run(ctx, input) {
    law<Equal<typeof input, { path: string; width: number }>>();
    return ctx.attempt;
  },
});
law<Equal<InputOf<typeof withZod>, { path: string; width?: number | undefined }>>();
law<Equal<OutputOf<typeof withZod>, number>>();

const withValibot = job({
  name: "valibot",
  input: v.object({ path: v.string() }),
  run: async (_ctx, input) => input.path,
});
law<Equal<InputOf<typeof withValibot>, { path: string }>>();
law<Equal<OutputOf<typeof withValibot>, string>>();

const withType = job({
  name: "type",
  input: type<{ at: Date }>(),
  run(_ctx, input) {
    law<Equal<typeof input, { at: string }>>();
  },
});
law<Equal<InputOf<typeof withType>, { at: Date | string }>>();
law<Equal<OutputOf<typeof withType>, null>>();

const revived = job({
  name: "date-revived-by-a-schema",
  input: z.object({ at: z.coerce.date<Date | string>() }),
  run: (_ctx, input) => input.at.getTime(),
});
law<Equal<InputOf<typeof revived>, { at: Date | string }>>();

interface Picture {
  readonly path: string;
  readonly tags?: readonly string[];
}
const withInterface = job({ name: "interface", run: (_ctx, input: Picture) => input });
law<Equal<InputOf<typeof withInterface>, Picture>>();
law<Equal<OutputOf<typeof withInterface>, Picture>>();

const withOutput = job({
  name: "output",
  output: z.object({ n: z.number().default(0) }),
  run: async () => ({}),
});
law<Equal<OutputOf<typeof withOutput>, { n: number }>>();

const withoutInput = job({ name: "nothing", run: async () => {} });
law<Equal<InputOf<typeof withoutInput>, unknown>>();
law<Equal<OutputOf<typeof withoutInput>, null>>();

// ---- what does not

job({
  name: "result-that-json-cannot-carry",
  // @ts-expect-error TS2322 at run
  run: async () => ({ seen: new Set<string>() }),
});

job({
  name: "result-that-its-schema-does-not-take",
  output: z.object({ n: z.number() }),
  // @ts-expect-error TS2322 at ({ n: "1" })
  run: async () => ({ n: "1" }),
});

job({
  name: "input-that-is-not-of-its-schema",
  // @ts-expect-error TS2322 at input
  input: z.object({ n: z.number() }),
  run(_ctx, input: { m: number }) {
    return input.m;
  },
});

job({
  name: "typo-in-input",
  input: z.object({ n: z.number() }),
  // @ts-expect-error TS2339 at m
  run: (_ctx, { m }) => m,
});

job({
  name: "unknown-option",
  // @ts-expect-error TS2353 at attempts
  attempts: 3,
  run: () => null,
});

job({
  name: "bad-backoff",
  // @ts-expect-error TS2322 at backoff
  backoff: () => "soon",
  run: () => null,
});

// @ts-expect-error TS2345 at {
job({ name: "no-run" });
