import { job } from "pawl";
import { expect, it } from "vitest";
import { aTest, newYear } from "../../testing/test.js";
import { downtime } from "../../laws/schedules/downtime.js";

it("a schedule with a large input catches up, although all inputs together exceed what one JSON value holds", async () => {
  const t = await aTest({ now: newYear });
  const importing = job({ name: "importing", run: (_ctx, _input: string) => {} });
  await t.pawl.schedules.set("imports", {
    every: "1h",
    start: importing,
    input: "x".repeat(1_000_000),
    catchUp: "all",
  });
  await downtime(t, "300 hours");
  expect(await t.pawl.runs.count({ name: "importing" })).toBe(300);
});
