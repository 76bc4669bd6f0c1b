import { job, NonRetryable, type } from "pawl";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

/** Longer than a test may take: only a full batch is called. */
const never = "1m";
const numbered = type<{ n: number }>();
const numbers = (count: number): { input: { n: number } }[] =>
  Array.from({ length: count }, (_, n) => ({ input: { n } }));
const idsOf = (started: readonly { runId: string }[]): string[] => started.map(({ runId }) => runId);
const results = (runIds: readonly string[]): Promise<unknown[]> =>
  Promise.all(runIds.map((runId) => pawl.result(runId)));

describe("a call of a batch job", () => {
  it("takes at most as many runs as its size, and fewer after its wait", async () => {
    const sizes: number[] = [];
    const insert = job({
      name: "insert",
      queue: "insert",
      input: numbered,
      batch: { size: 100, wait: "300ms" },
      run: (_ctx, items) => {
        sizes.push(items.length);
        return items.map(({ input, runId, attempt }) => ({ double: input.n * 2, runId, attempt }));
      },
    });
    const runIds = idsOf(await pawl.startMany(insert, numbers(250)));
    await serve([insert]);
    expect(await results(runIds)).toEqual(runIds.map((runId, n) => ({ double: n * 2, runId, attempt: 0 })));
    expect(sizes).toEqual([100, 100, 50]);
  });

  it("takes more runs than one claim brings", async () => {
    const sizes: number[] = [];
    const large = job({
      name: "large",
      queue: "large",
      batch: { size: 1_200, wait: never },
      run: (_ctx, items) => void sizes.push(items.length),
    });
    const runIds = idsOf(
      await pawl.startMany(
        large,
        Array.from({ length: 1_200 }, () => ({ input: null })),
      ),
    );
    await serve([large]);
    await results(runIds);
    expect(sizes).toEqual([1_200]);
  });

  it("takes runs that this process starts one by one", async () => {
    const sizes: number[] = [];
    const direct = job({
      name: "direct",
      queue: "direct",
      input: numbered,
      batch: { size: 3, wait: never },
      run: (_ctx, items) => {
        sizes.push(items.length);
        return items.map(({ input }) => input.n);
      },
    });
    await serve([direct]);
    const runIds: string[] = [];
    for (const { input } of numbers(3)) runIds.push((await pawl.start(direct, input)).runId);
    expect(await results(runIds)).toEqual([0, 1, 2]);
    expect(sizes).toEqual([3]);
  });

  it("takes one slot: no more calls run at once than the queue has slots", async () => {
    const calls = gate();
    let atOnce = 0;
    let most = 0;
    const slow = job({
      name: "slow",
      queue: "slow",
      batch: { size: 2, wait: 0 },
      run: async () => {
        most = Math.max(most, ++atOnce);
        await calls.pass();
        atOnce--;
      },
    });
    const runIds = idsOf(
      await pawl.startMany(
        slow,
        Array.from({ length: 9 }, () => ({ input: null })),
      ),
    );
    await serve([slow], { queues: { slow: 2 } });
    await until("two calls run", () => calls.entered() === 2);
    // A worker whose slots are taken leaves the other runs to other workers.
    await until("the rest is free", async () => {
      const [row] = await sql(
        "select count(*)::int as n from runs where queue = 'slow' and status = 'runnable'",
      );
      return row?.n === 5;
    });
    calls.open();
    await results(runIds);
    expect(most).toBe(2);
  });

  it("does not keep other jobs of its queue waiting, while runs are collected", async () => {
    const collecting = job({
      name: "collecting",
      queue: "shared",
      batch: { size: 10, wait: never },
      run: () => null,
    });
    const single = job({ name: "single", queue: "shared", run: () => "done" });
    await serve([collecting, single], { queues: { shared: 1 } });
    await pawl.start(collecting, null);
    const { runId } = await pawl.start(single, null);
    expect(await pawl.result(runId)).toBe("done");
  });

  it("has at most one run of a partition key, in order", async () => {
    const calls: number[][] = [];
    const keyed = job({
      name: "keyed",
      queue: "keyed",
      input: numbered,
      batch: { size: 10, wait: "50ms" },
      run: (_ctx, items) => void calls.push(items.map(({ input }) => input.n)),
    });
    const items = numbers(6).map((item) => ({ ...item, partitionKey: `key-${item.input.n % 2}` }));
    const runIds = idsOf(await pawl.startMany(keyed, items));
    await serve([keyed]);
    await results(runIds);
    for (const call of calls) expect(new Set(call.map((n) => n % 2)).size).toBe(call.length);
    const order = calls.flat();
    expect(order.filter((n) => n % 2 === 0)).toEqual([0, 2, 4]);
    expect(order.filter((n) => n % 2 === 1)).toEqual([1, 3, 5]);
  });
});

describe("the outcome of a call", () => {
  it("is the result of every run, if it is no array", async () => {
    const shared = job({
      name: "shared",
      batch: { size: 3, wait: never },
      queue: "outcomes",
      run: (_ctx, items) => ({ size: items.length }),
    });
    await serve([shared]);
    const runIds = idsOf(await pawl.startMany(shared, [{ input: 1 }, { input: 2 }, { input: 3 }]));
    expect(await results(runIds)).toEqual([{ size: 3 }, { size: 3 }, { size: 3 }]);
  });

  it("retries only the runs that ctx.fail names, each with its own attempt", async () => {
    const calls: [number, number][][] = [];
    const partial = job({
      name: "partial",
      queue: "partial",
      input: numbered,
      batch: { size: 4, wait: "50ms" },
      backoff: () => 0,
      run: (ctx, items) => {
        calls.push(items.map(({ input, attempt }) => [input.n, attempt]));
        return items.map(({ input, attempt }) =>
          input.n === 1 && attempt < 2 ? ctx.fail(new Error("not yet")) : input.n,
        );
      },
    });
    await serve([partial]);
    const runIds = idsOf(await pawl.startMany(partial, numbers(4)));
    expect(await results(runIds)).toEqual([0, 1, 2, 3]);
    const of = (n: number): number[] =>
      calls.flat().flatMap(([one, attempt]) => (one === n ? [attempt] : []));
    expect([of(0), of(1), of(2), of(3)]).toEqual([[0], [0, 1, 2], [0], [0]]);
  });

  it("fails a run at once with a NonRetryable error, or when its attempts are used up", async () => {
    const failing = job({
      name: "failing",
      queue: "failing",
      input: numbered,
      batch: { size: 3, wait: "50ms" },
      maxAttempts: 2,
      backoff: () => 0,
      run: (ctx, items) =>
        items.map(({ input }) => {
          if (input.n === 0) return "fine";
          return ctx.fail(input.n === 1 ? new NonRetryable("never") : new Error("again"));
        }),
    });
    await serve([failing]);
    const [fine, refused, usedUp] = idsOf(await pawl.startMany(failing, numbers(3)));
    expect(await pawl.result(fine!)).toBe("fine");
    await expect(pawl.result(refused!)).rejects.toMatchObject({ error: { message: "never" } });
    await expect(pawl.result(usedUp!)).rejects.toMatchObject({ error: { message: "again" } });
    const [row] = await sql("select attempt from runs where id = $1", [usedUp]);
    expect(row).toEqual({ attempt: 1 });
  });

  it("retries all runs after a throw, each with its own attempt and backoff", async () => {
    const seen = new Map<string, number[]>();
    const backoffs: number[] = [];
    const thrown = job({
      name: "thrown",
      queue: "thrown",
      batch: { size: 2, wait: "50ms" },
      backoff: (attempt) => (backoffs.push(attempt), attempt),
      run: (_ctx, items) => {
        for (const { runId, attempt } of items) seen.set(runId, [...(seen.get(runId) ?? []), attempt]);
        if (items.some(({ attempt }) => attempt < 2)) throw new Error("all of them");
        return "at last";
      },
    });
    await serve([thrown]);
    const runIds = idsOf(await pawl.startMany(thrown, [{ input: 1 }, { input: 2 }]));
    expect(await results(runIds)).toEqual(["at last", "at last"]);
    for (const runId of runIds) expect(seen.get(runId)!.slice(0, 3)).toEqual([0, 1, 2]);
    expect(backoffs.filter((attempt) => attempt < 2).toSorted()).toEqual([0, 0, 1, 1]);
  });

  it("fails all runs if an array has another length, and says so", async () => {
    const wrong = job({
      name: "wrong",
      queue: "wrong",
      batch: { size: 2, wait: never },
      run: () => ["one"],
    });
    await serve([wrong]);
    const runIds = idsOf(await pawl.startMany(wrong, [{ input: 1 }, { input: 2 }]));
    for (const runId of runIds) {
      await expect(pawl.result(runId)).rejects.toMatchObject({
        error: {
          code: "InvalidOutcome",
          message: expect.stringContaining("a batch of 2 runs returned an array of 1"),
        },
      });
    }
  });

  it("fails only the run whose input or result its schema refuses", async () => {
    const sizes: number[] = [];
    const checked = job({
      name: "checked",
      queue: "checked",
      input: z.object({ n: z.number() }),
      output: z.object({ half: z.number().int() }),
      batch: { size: 2, wait: never },
      run: (_ctx, items) => {
        sizes.push(items.length);
        return items.map(({ input }) => ({ half: input.n / 2 }));
      },
    });
    const [even, odd, broken] = idsOf(
      await pawl.startMany(
        checked,
        [2, 3, 4].map((n) => ({ input: { n } })),
      ),
    );
    await sql(`update runs set input = '{"n": "4"}' where id = $1`, [broken]);
    await serve([checked]);
    expect(await pawl.result(even!)).toEqual({ half: 1 });
    await expect(pawl.result(odd!)).rejects.toMatchObject({ error: { code: "InvalidOutcome" } });
    await expect(pawl.result(broken!)).rejects.toMatchObject({ error: { code: "InvalidInput" } });
    expect(sizes).toEqual([2]);
  });
});
