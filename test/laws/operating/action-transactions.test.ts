import { job } from "pawl";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";

const database = await testDatabase();
const { pawl } = testEngine(database);
const { sql } = database;

const report = job({ name: "report", run: () => null });
const from = new Date("2026-01-01T00:00:00Z");
const to = new Date("2026-01-03T00:00:00Z");

/** Everything that the actions below could change. */
const state = async () => ({
  runs: await sql("select id, hold, status from runs order by id"),
  schedules: await sql("select * from schedules order by name"),
  limits: await sql("select name, concurrent from limits order by name"),
  pauses: await sql("select scope, name from pauses order by scope, name"),
  actions: (await pawl.actions.list()).actions,
});

describe.skipIf(database.server !== undefined)("an action whose line of the log cannot be written", () => {
  let runId: string;
  let pausedId: string;

  beforeEach(async () => {
    await pawl.schedules.set("nightly", { cron: "@daily", start: report, paused: true });
    ({ runId } = await pawl.start(report));
    ({ runId: pausedId } = await pawl.start(report));
    await pawl.runs.pause(pausedId);
    await pawl.queues.pause("letters");
    await sql("alter table actions add constraint refused check (false) not valid");
  });
  afterEach(async () => {
    await sql("alter table actions drop constraint refused");
  });

  it.each<[string, () => Promise<unknown>]>([
    ["schedules.set", () => pawl.schedules.set("hourly", { cron: "@hourly", start: report })],
    ["schedules.set again", () => pawl.schedules.set("nightly", { cron: "@weekly", start: report })],
    ["schedules.trigger", () => pawl.schedules.trigger("nightly")],
    ["schedules.backfill", () => pawl.schedules.backfill("nightly", { from, to })],
    ["schedules.resume", () => pawl.schedules.resume("nightly")],
    ["schedules.remove", () => pawl.schedules.remove("nightly")],
    ["limits.set", () => pawl.limits.set("gpu", { concurrent: 2 })],
    ["runs.pause", () => pawl.runs.pause(runId)],
    ["runs.resume", () => pawl.runs.resume(pausedId)],
    ["queues.pause", () => pawl.queues.pause("parcels")],
    ["queues.resume", () => pawl.queues.resume("letters")],
    ["definitions.pause", () => pawl.definitions.pause("report", { version: 1 })],
  ])("%s changes nothing", async (_name, act) => {
    const before = await state();
    await expect(act()).rejects.toThrow(/refused/);
    expect(await state()).toEqual(before);
  });
});

describe("the action log", () => {
  it("has the range of each batch of a backfill, and the run of a trigger", async () => {
    await pawl.schedules.set("daily", { cron: "@daily", timeZone: "UTC", start: report, paused: true });
    const { runId } = await pawl.schedules.trigger("daily");
    await pawl.schedules.backfill("daily", { from, to });
    const { actions } = await pawl.actions.list({ target: "daily" });
    expect(actions.map(({ action, detail }) => [action, detail])).toEqual([
      ["schedules.backfill", { from: from.toISOString(), to: to.toISOString(), runs: 2 }],
      ["schedules.trigger", { runId }],
      ["schedules.set", null],
    ]);
  });

  it("has no second line for a limit that is set to what it was", async () => {
    await pawl.limits.set("ovens", { concurrent: 2 });
    await pawl.limits.set("ovens", { concurrent: 2 });
    await pawl.limits.set("ovens", { concurrent: 3 });
    const { actions } = await pawl.actions.list({ target: "ovens" });
    expect(actions.map(({ detail }) => detail)).toEqual([{ concurrent: 3 }, { concurrent: 2 }]);
  });
});
