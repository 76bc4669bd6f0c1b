import { hold, job, machine } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, store } = database;

const idle = machine({
  name: "idle",
  steps: { start: (ctx) => ctx.awaitSignal("go", "end", ctx.state), end: (ctx) => ctx.done() },
});
const broken = job({
  name: "broken",
  maxAttempts: 1,
  run: () => {
    throw new Error("out of order");
  },
});
const linesOf = async (target: string) =>
  (await pawl.actions.list({ target })).actions.map(({ action, detail }) => [action, detail]);

describe("the action log", () => {
  it("has a line for each cancel, rerun, bulk operation, limit and schedule, and none for starts and signals", async () => {
    await serve([idle, broken]);
    const { runId } = await pawl.start(idle, {});
    await pawl.signal(runId, "other", {});
    expect(await linesOf(runId)).toEqual([]);
    await pawl.runs.cancel(runId, { reason: "enough" });
    await pawl.runs.cancel(runId);
    expect(await linesOf(runId)).toEqual([["runs.cancel", { reason: "enough" }]]);

    const failed = await pawl.start(broken);
    await until("it has failed", async () => (await pawl.runs.get(failed.runId)).status === "failed");
    const rerun = await pawl.runs.rerun(failed.runId, { from: "start" });
    expect(await linesOf(failed.runId)).toEqual([["runs.rerun", { runId: rerun.runId, from: "start" }]]);

    const { id } = await pawl.runs.bulk({ where: { name: "idle" }, action: "delete" });
    expect(await linesOf(id)).toEqual([
      ["runs.bulk", { action: "delete", where: { name: "idle" }, counted: 1 }],
    ]);
    await pawl.queues.pause("letters", { reason: "holiday" });
    await pawl.queues.resume("letters");
    expect(await linesOf("letters")).toEqual([
      ["queues.resume", null],
      ["queues.pause", { reason: "holiday" }],
    ]);
    await pawl.limits.set("mail", { allowed: 1, period: "1s" });
    expect(await linesOf("mail")).toEqual([["limits.set", expect.objectContaining({ allowed: 1 })]]);
    await pawl.schedules.set("nightly", { cron: "@daily", start: "idle", input: {} });
    await pawl.schedules.set("nightly", { cron: "@daily", start: "idle", input: {} });
    await pawl.schedules.pause("nightly");
    expect(await linesOf("nightly")).toEqual([
      ["schedules.pause", null],
      ["schedules.set", null],
    ]);
  });

  it.skipIf(database.server !== undefined)("says that the database was held and released", async () => {
    await hold({ url: database.url });
    await hold.release({ url: database.url });
    const { actions } = await pawl.actions.list({ limit: 2 });
    expect(actions.map(({ action, who }) => [action, who])).toEqual([
      ["database.release", "local"],
      ["database.hold", "local"],
    ]);
  });

  it("is read newest first, page by page, by who, action and time", async () => {
    const all = (await pawl.actions.list()).actions;
    const pages = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page = await pawl.actions.list({ limit: 2, ...(cursor === undefined ? {} : { cursor }) });
      pages.push(...page.actions);
      ({ cursor } = page);
    }
    expect(pages).toEqual(all);
    const ids = all.map(({ id }) => Number(id));
    expect(ids).toEqual(ids.toSorted((one, other) => other - one));
    const cancels = await pawl.actions.list({ action: "runs.cancel", who: all[0]!.who });
    expect(cancels.actions).toEqual(all.filter(({ action }) => action === "runs.cancel"));
    expect(await pawl.actions.list({ since: new Date(Date.now() + 60_000) })).toEqual({
      actions: [],
      cursor: null,
    });
    const list: (options: object) => Promise<unknown> = pawl.actions.list;
    await expect(list({ how: "x" })).rejects.toThrow(/unknown option "how"/);
    await expect(list({ cursor: "x" })).rejects.toMatchObject({ code: "InvalidOption" });
  });

  it("an action that is rolled back leaves no line", async () => {
    const before = await pawl.actions.list();
    await expect(pawl.runs.cancel("64000064")).rejects.toMatchObject({ code: "RunNotFound" });
    await expect(pawl.runs.rerun("64000064")).rejects.toMatchObject({ code: "RunNotFound" });
    expect(await pawl.actions.list()).toEqual(before);
  });

  it("a sweep deletes lines after 90 days and bulk operations after 30, and no others", async () => {
    await until("the operation is over", async () => (await pawl.bulk.list()).operations[0]?.completedAt);
    const { actions } = await pawl.actions.list();
    await sql("update actions set at = at - interval '91 days' where id < $1", [actions[1]!.id]);
    await sql("update bulk_operations set completed_at = completed_at - interval '29 days'");
    await store.sweep(1_000);
    expect((await pawl.actions.list()).actions.map(({ id }) => id)).toEqual([actions[0]!.id, actions[1]!.id]);
    expect((await pawl.bulk.list()).operations).toHaveLength(1);
    // An older operation that does not end keeps no other.
    await sql(`insert into bulk_operations (id, status, action, filter, options, actor, upto, counted, started_at, completed_at)
      overriding system value values (-1, 'working', 'cancel', '{"where": {}}', '{}', '{"who": "local"}', 0, 0, clock(), null)`);
    await sql("update bulk_operations set completed_at = completed_at - interval '2 days'");
    await store.sweep(1_000);
    expect((await pawl.bulk.list()).operations.map(({ id }) => id)).toEqual(["-1"]);
    expect(await sql("select 1 from bulk_results")).toEqual([]);
  });
});
