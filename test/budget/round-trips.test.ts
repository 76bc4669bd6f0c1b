/**
 * How many statements a worker may send, counted by a proxy before the database, whatever they take: all of them, the claims, the
 * heartbeat and the repairs included.
 */

import { job, machine, type, workflow } from "pawl";
import { expect, it } from "vitest";
import { countingProxyTo, sentSince } from "../support/proxies/counting-proxy.js";
import { testDatabase } from "../support/database.js";
import { silent, testEngine } from "../support/engine.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const runs = 600;
const concurrency = 300;
const stepsPerRun = 10;

/** The options of `serve` as they are by default, but that the worker is seen through a proxy. */
const usual = (url: string) =>
  ({ url, lease: undefined, heartbeat: undefined, reapInterval: undefined, logger: silent }) as const;

const stepping = machine({
  name: "stepping",
  initial: "step",
  state: type<{ n: number }>(),
  steps: {
    step: (ctx) => {
      const n = ctx.state.n + 1;
      return n === stepsPerRun ? ctx.done(n) : ctx.next("step", { n });
    },
  },
});

const journaling = workflow({
  name: "journaling",
  run: async (ctx) => {
    for (let n = 0; n < stepsPerRun; n++) await ctx.step.run(`step-${n}`, () => n);
  },
});

const single = job({ name: "single", run: () => null });

const busy = [
  { what: "machine", definition: stepping, input: { n: 0 }, steps: stepsPerRun },
  { what: "workflow", definition: journaling, input: null, steps: stepsPerRun },
  { what: "job", definition: single, input: null, steps: 1 },
] as const;

for (const { what, definition, input, steps } of busy) {
  it(`a step of a ${what} costs a busy worker at most a twentieth of a round trip`, async () => {
    // As many steps of each kind, so that what a worker's life costs weighs the same.
    const count = (runs * stepsPerRun) / steps;
    await pawl.startMany(
      definition as typeof stepping,
      Array.from({ length: count }, () => ({ input: input as { n: number } })),
    );
    const proxy = await countingProxyTo(database.url);
    const sent = sentSince(proxy);
    const worker = await serve([definition], { ...usual(proxy.url), queues: { default: concurrency } });
    await until("all runs are done", async () => {
      const [open] = await sql<{ n: number }>("select count(*)::int as n from runs where status <> 'done'");
      return open?.n === 0;
    });
    const { total, kinds } = sent();
    await worker.stop();
    expect(total, JSON.stringify(kinds)).toBeLessThanOrEqual((count * steps) / 20);
  });
}

/** A look at an empty queue is followed by a wait half as long again, from 20 ms to 1 s: after so many it grows no more. */
const looksUntilRest = 12;
/** Long enough that a statement more or less at its ends does not matter. */
const restSeconds = 15;

const layouts = [["default"], ["default", "a", "b", "c", "d", "e", "f", "g"]];

for (const queues of layouts) {
  it.concurrent(`an idle worker sends at most two statements a second per queue, with ${queues.length} of them`, async () => {
    const proxy = await countingProxyTo(database.url);
    const worker = await serve([single], {
      ...usual(proxy.url),
      queues: Object.fromEntries(queues.map((queue) => [queue, 10])),
    });
    await until(
      "its looks have become rare",
      () => proxy.counts()["claim"]! >= looksUntilRest * queues.length,
    );
    const begin = await databaseSeconds();
    const sent = sentSince(proxy);
    await until("the time is over", async () => (await databaseSeconds()) - begin >= restSeconds);
    const { total, kinds } = sent();
    const seconds = (await databaseSeconds()) - begin;
    await worker.stop();
    expect(kinds["claim"]).toBeGreaterThan(0);
    expect(total, JSON.stringify(kinds)).toBeLessThanOrEqual(2 * seconds * queues.length);
  });
}

async function databaseSeconds(): Promise<number> {
  const [row] = await sql<{ at: number }>("select extract(epoch from clock_timestamp())::float8 as at");
  return row!.at;
}
