import { job } from "pawl";
import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";

const { pawl, serve } = testEngine(await testDatabase());

it("a rerun of a scheduled run has the same ctx.schedule, and why names the schedule of both", async () => {
  const seen: unknown[] = [];
  const report = job({
    name: "report",
    maxAttempts: 1,
    run: (ctx) => {
      seen.push(ctx.schedule);
      if (seen.length === 1) throw new Error("no paper");
      return null;
    },
  });
  await serve([report]);
  await pawl.schedules.set("nightly", { cron: "@daily", start: report, paused: true });
  const { runId } = await pawl.schedules.trigger("nightly");
  await expect(pawl.result(runId)).rejects.toThrow("no paper");
  const rerun = await pawl.runs.rerun(runId);
  await pawl.result(rerun.runId);
  const schedule = { name: "nightly", at: expect.any(Date) as Date };
  expect(seen).toEqual([schedule, seen[0]]);
  for (const id of [runId, rerun.runId]) {
    const why = await pawl.why(id);
    expect(why.schedule).toEqual(seen[0]);
    expect(why.text).toContain(`; the schedule "nightly" started it for ${why.schedule!.at.toISOString()}`);
    expect((await pawl.runs.get(id)).schedule).toEqual(seen[0]);
  }
  const other = await pawl.start("report", null, { delay: "1h" });
  expect(await pawl.why(other.runId)).not.toHaveProperty("schedule");
});
