import { type BatchItem, job } from "pawl";
import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const { pawl, serve } = testEngine(await testDatabase());

it("a run that is paused while it waits for its batch is not part of the call", async () => {
  const calls: number[][] = [];
  const sending = job({
    name: "sending",
    batch: { size: 10, wait: "2s" },
    run: async (_ctx, items: readonly BatchItem<number>[]) => {
      calls.push(items.map(({ input }) => input));
    },
  });
  await serve([sending]);
  const started = await Promise.all([1, 2, 3].map((n) => pawl.start(sending, n)));
  await until("all are claimed", async () => {
    const runs = await Promise.all(started.map(({ runId }) => pawl.runs.get(runId)));
    return runs.every(({ phase }) => phase === "executing");
  });
  await pawl.runs.pause(started[1]!.runId);
  await Promise.all([0, 2].map((n) => pawl.result(started[n]!.runId)));
  expect(calls.flat().toSorted()).toEqual([1, 3]);
  await until("it is released", async () => (await pawl.runs.get(started[1]!.runId)).phase === "runnable");
  await pawl.runs.resume(started[1]!.runId);
  await pawl.result(started[1]!.runId);
  expect(calls.flat().toSorted()).toEqual([1, 2, 3]);
});
