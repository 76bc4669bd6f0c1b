import { job, workflow } from "pawl";
import { expect, it } from "vitest";
import { aTest } from "./test.js";

const double = job({ name: "double", run: (_ctx, n: number) => n * 2 });
const napping = workflow({
  name: "napping",
  run: async ({ step }) => {
    await step.sleep("nap", "1d");
    return "awake";
  },
});

it("a drain leaves paused runs alone, and t.advance does not wake them", async () => {
  const t = await aTest();
  await t.serve([double, napping]);
  await t.pawl.queues.pause("default");
  const waiting = await t.pawl.start(double, 1);
  await t.drain();
  expect(await t.pawl.runs.get(waiting.runId)).toMatchObject({
    phase: "runnable",
    paused: { scope: "queue" },
  });
  await t.pawl.queues.resume("default");
  await t.drain();
  expect(await t.pawl.result(waiting.runId)).toBe(2);

  const { runId } = await t.pawl.start(napping, undefined);
  await t.drain();
  await t.pawl.runs.pause(runId);
  await t.advance("2d");
  expect(await t.pawl.runs.get(runId)).toMatchObject({ status: "running", paused: { scope: "run" } });
  await t.pawl.runs.resume(runId);
  await t.drain();
  expect(await t.pawl.result(runId)).toBe("awake");
});
