import { job, type } from "pawl";
import { describe, expect, it } from "vitest";
import { aTest } from "./test.js";

const numbers = (count: number): { input: { n: number } }[] =>
  Array.from({ length: count }, (_, n) => ({ input: { n } }));

function recorder({ size }: { size: number }) {
  const calls: [number, number][][] = [];
  const record = job({
    name: "record",
    input: type<{ n: number }>(),
    batch: { size, wait: "1m" },
    run: (_ctx, items) => {
      calls.push(items.map(({ input, attempt }) => [input.n, attempt]));
      return items.map(({ input }) => input.n * 2);
    },
  });
  return { record, calls };
}

describe("a batch job in a test", () => {
  it("is called with all runs that are due, as soon as the test is at rest", async () => {
    const t = await aTest();
    const { record, calls } = recorder({ size: 100 });
    await t.serve([record]);
    const started = [];
    for (const { input } of numbers(3)) started.push(await t.pawl.start(record, input));
    expect(calls).toEqual([]);
    await t.drain();
    expect(calls).toEqual([
      [
        [0, 0],
        [1, 0],
        [2, 0],
      ],
    ]);
    const outputs = await Promise.all(started.map(async ({ runId }) => t.pawl.result(runId)));
    expect(outputs).toEqual([0, 2, 4]);
  });

  it("is called with full batches first, and groups runs that fall due at one time", async () => {
    const t = await aTest();
    const { record, calls } = recorder({ size: 40 });
    await t.serve([record]);
    await t.pawl.startMany(record, numbers(100));
    await t.drain();
    expect(calls.map((call) => call.length)).toEqual([40, 40, 20]);
    await t.pawl.startMany(
      record,
      numbers(5).map((item) => ({ ...item, delay: "1h" })),
    );
    await t.advance("1h");
    expect(calls.slice(3).map((call) => call.length)).toEqual([5]);
  });

  it("counts a crash for each of its runs, and runs them again", async () => {
    const t = await aTest();
    let calls = 0;
    const attempts: number[][] = [];
    const crashing = job({
      name: "crashing",
      batch: { size: 10 },
      run: async (_ctx, items) => {
        attempts.push(items.map(({ attempt }) => attempt));
        if (calls++ > 0) return "done";
        void t.crash();
        return new Promise<string>(() => {});
      },
    });
    await t.serve([crashing]);
    const started = await t.pawl.startMany(crashing, [{ input: 1 }, { input: 2 }]);
    await t.drain();
    expect(attempts).toEqual([
      [0, 0],
      [1, 1],
    ]);
    for (const { runId } of started) expect((await t.pawl.runs.get(runId)).output).toBe("done");
  });

  it("does the same work wherever a worker crashes", async () => {
    const t = await aTest();
    const done = new Set<string>();
    const taken = (): boolean => {
      const isDone = done.size > 0;
      done.clear();
      return isDone;
    };
    const idempotent = job({
      name: "idempotent",
      batch: { size: 10 },
      run: (_ctx, items) => {
        for (const { runId } of items) done.add(runId);
        return "done";
      },
    });
    await t.serve([idempotent]);
    const report = await t.crashEverywhere(idempotent, null, { effects: taken });
    expect(report.changed).toEqual([]);
    expect(report.points).toBeGreaterThan(0);
  });
});
