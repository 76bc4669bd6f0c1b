import { job, workflow } from "pawl";
import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

it("a parent that is woken for each of its children, one by one, gets each once and in the order in which they ended", async () => {
  const children = 40;
  const gates = Array.from({ length: children }, () => {
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => (open = resolve));
    return { open, opened };
  });
  const child = job({
    name: "gated",
    run: async (_ctx, index: number) => {
      await gates[index]!.opened;
      return index;
    },
  });
  let bodies = 0;
  const ended: number[] = [];
  const parent = workflow({
    name: "fanning",
    run: async (ctx) => {
      bodies++;
      const indexes = Array.from({ length: children }, (_, index) => index);
      return Promise.all(
        indexes.map(async (index) => {
          const result = await ctx.step.invoke(`child-${index}`, child, index);
          if (!ended.includes(result)) ended.push(result);
          return result;
        }),
      );
    },
  });
  await serve([parent, child], { queues: { default: 100 } });
  const { runId } = await pawl.start(parent, null);
  for (const [index, { open }] of gates.entries()) {
    open();
    // One after the other: each is delivered before the next ends.
    while (!ended.includes(index)) await new Promise((resolve) => setTimeout(resolve, 2));
  }
  expect(await pawl.result(runId)).toEqual(Array.from({ length: children }, (_, index) => index));
  expect(bodies).toBeGreaterThan(children / 2);
  const steps = await pawl.runs.steps(runId);
  expect(steps).toHaveLength(children);
  expect(steps.map(({ output }) => output)).toEqual(ended);
});
