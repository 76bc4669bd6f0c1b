import { job, signal, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { aTest, newYear } from "../../testing/test.js";
import { downtime, ticksOf } from "./downtime.js";

const midnights = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => new Date(Date.UTC(2030, 0, from + n)).toISOString());

describe("a schedule", () => {
  it("starts one run at each tick, and the run knows its tick", async () => {
    const t = await aTest({ now: newYear });
    const seen: unknown[] = [];
    const report = job({
      name: "report",
      run: (ctx, input: { days: number }) => void seen.push([ctx.schedule, input, t.now().toISOString()]),
    });
    await t.serve([report]);
    const set = await t.pawl.schedules.set("nightly", {
      cron: "0 3 * * *",
      timeZone: "Europe/Berlin",
      start: report,
      input: { days: 30 },
    });
    expect(set.next.map((at) => at.toISOString())).toEqual(
      [1, 2, 3, 4, 5].map((day) => `2030-01-0${day}T02:00:00.000Z`),
    );
    await t.advance("2d");
    const at = (day: number) => new Date(`2030-01-0${day}T02:00:00.000Z`);
    expect(seen).toEqual([
      [{ name: "nightly", at: at(1) }, { days: 30 }, at(1).toISOString()],
      [{ name: "nightly", at: at(2) }, { days: 30 }, at(2).toISOString()],
    ]);
    const { runs } = await t.pawl.runs.list({ name: "report" });
    expect(runs[0]).toMatchObject({
      schedule: { name: "nightly", at: at(2) },
      idempotencyKey: "schedule/nightly/2030-01-02T02:00:00.000Z",
    });
    expect(await t.pawl.schedules.get("nightly")).toMatchObject({
      lastAt: at(2),
      lastRunId: runs[0]!.runId,
      lastStatus: "completed",
      nextAt: at(3),
      problem: null,
    });
  });

  it("tells a workflow its tick also after a sleep, and a run that somebody started has none", async () => {
    const t = await aTest({ now: newYear });
    const flow = workflow({
      name: "flow",
      run: async (ctx) => {
        await ctx.step.sleep("nap", "1m");
        return ctx.schedule?.at.toISOString() ?? null;
      },
    });
    await t.serve([flow]);
    await t.pawl.schedules.set("flow", { every: "1h", start: flow });
    await t.advance("62m");
    const { runs } = await t.pawl.runs.list({ name: "flow" });
    expect(runs.map(({ output }) => output)).toEqual(["2030-01-01T01:00:00.000Z"]);
    const { runId } = await t.pawl.start(flow);
    await t.advance("2m");
    expect(await t.pawl.result(runId)).toBe(null);
    expect((await t.pawl.runs.get(runId)).schedule).toBe(null);
  });

  it("fires in order with other schedules while a test advances its clock by 30 days", async () => {
    const t = await aTest({ now: newYear });
    const seen: [string, number][] = [];
    const note = job({
      name: "note",
      run: ({ schedule }) => void seen.push([schedule!.name, schedule!.at.getTime()]),
    });
    await t.serve([note], { schedules: { often: { cron: "0 */6 * * *", start: note } } });
    await t.pawl.schedules.set("daily", { cron: "30 12 * * *", start: note });
    await t.pawl.schedules.set("monthly", { cron: "15 0 L * *", start: note });
    await t.advance("30d");
    expect(seen.filter(([name]) => name === "often")).toHaveLength(30 * 4);
    expect(seen.filter(([name]) => name === "daily")).toHaveLength(30);
    expect(seen.filter(([name]) => name === "monthly")).toHaveLength(0);
    expect(seen).toEqual(seen.toSorted(([, one], [, other]) => one - other));
    await t.advance("1d");
    expect(seen.filter(([name]) => name === "monthly")).toEqual([["monthly", Date.UTC(2030, 0, 31, 0, 15)]]);
  });

  it("fires each tick later by an offset that depends on its name only, within its jitter", async () => {
    const t = await aTest({ now: newYear });
    const fired: number[] = [];
    const work = job({ name: "work", run: () => void fired.push(t.now().getTime()) });
    await t.serve([work]);
    const { offsetMs } = await t.pawl.schedules.set("spread", { every: "1h", jitter: "10m", start: work });
    expect(offsetMs).toBeGreaterThan(0);
    expect(offsetMs).toBeLessThan(600_000);
    await t.advance("3h");
    const hours = [1, 2].map((n) => newYear.getTime() + n * 3_600_000);
    expect(fired.slice(0, 2)).toEqual(hours.map((at) => at + offsetMs));
    expect((await ticksOf(t, "work")).slice(0, 2)).toEqual(hours.map((at) => new Date(at).toISOString()));
    const other = await t.pawl.schedules.set("spread-2", { every: "1h", jitter: "10m", start: work });
    expect(other.offsetMs).not.toBe(offsetMs);
  });
});

describe("overlap", () => {
  const waiting = workflow({
    name: "waiting",
    signals: { go: signal() },
    run: async ({ step }) => void (await step.waitForEvent("go")),
  });

  it("skip starts no run while the last one is not terminal", async () => {
    const t = await aTest({ now: newYear });
    await t.serve([waiting]);
    await t.pawl.schedules.set("slow", { every: "1h", start: waiting });
    await t.advance("3h");
    expect(await ticksOf(t, "waiting")).toEqual(["2030-01-01T01:00:00.000Z"]);
    expect((await t.pawl.schedules.get("slow")).skippedAt).toEqual(new Date("2030-01-01T03:00:00Z"));
    const { runs } = await t.pawl.runs.list({ name: "waiting" });
    await t.pawl.signal(runs[0]!.runId, "go");
    await t.advance("1h");
    expect(await ticksOf(t, "waiting")).toEqual(["2030-01-01T01:00:00.000Z", "2030-01-01T04:00:00.000Z"]);
  });

  it("allow starts a run at every tick", async () => {
    const t = await aTest({ now: newYear });
    await t.serve([waiting]);
    await t.pawl.schedules.set("many", { every: "1h", start: waiting, overlap: "allow" });
    await t.advance("3h");
    expect(await t.pawl.runs.count({ name: "waiting", status: "running" })).toBe(3);
  });

  it("cancel cancels the last run, with a reason, and starts the next", async () => {
    const t = await aTest({ now: newYear });
    await t.serve([waiting]);
    await t.pawl.schedules.set("newest", { every: "1h", start: waiting, overlap: "cancel" });
    await t.advance("3h");
    const { runs } = await t.pawl.runs.list({ name: "waiting" });
    expect(runs.map(({ status }) => status)).toEqual(["running", "cancelled", "cancelled"]);
    expect(runs[1]!.error).toMatchObject({ message: "the schedule newest starts its next run" });
  });
});

describe("after a downtime, catchUp", () => {
  const work = job({ name: "work", run: () => null });

  it("last starts one run, for the latest missed tick", async () => {
    const t = await aTest({ now: newYear });
    await t.serve([work]);
    await t.pawl.schedules.set("daily", { cron: "@daily", start: work });
    await downtime(t, "10 days 5 hours");
    expect(await ticksOf(t, "work")).toEqual(midnights(11, 11));
    await t.advance("1d");
    expect(await ticksOf(t, "work")).toEqual(midnights(11, 12));
  });

  it("none starts no run for ticks that were missed", async () => {
    const t = await aTest({ now: newYear });
    await t.serve([work]);
    await t.pawl.schedules.set("daily", { cron: "@daily", start: work, catchUp: "none" });
    await downtime(t, "10 days 5 hours");
    expect(await ticksOf(t, "work")).toEqual([]);
    await t.advance("1d");
    expect(await ticksOf(t, "work")).toEqual(midnights(12, 12));
  });

  it("all starts a run for every missed tick, oldest first, whatever overlap says", async () => {
    const t = await aTest({ now: newYear });
    const seen: string[] = [];
    const slow = job({ name: "slow", run: (ctx) => void seen.push(ctx.schedule!.at.toISOString()) });
    await t.serve([slow], { queues: { default: 1 } });
    await t.pawl.schedules.set("daily", { cron: "@daily", start: slow, catchUp: "all" });
    await downtime(t, "10 days 5 hours");
    expect(seen).toEqual(midnights(2, 11));
    expect(await ticksOf(t, "slow")).toEqual(midnights(2, 11));
  });

  it("all starts at most 1,000 runs, and goes on with the next tick", async () => {
    const t = await aTest({ now: newYear, maxSteps: 10_000 });
    await t.serve([work]);
    await t.pawl.schedules.set("often", { every: "1m", start: work, catchUp: "all", overlap: "allow" });
    await downtime(t, "2 days");
    const ticks = await ticksOf(t, "work");
    expect(ticks).toHaveLength(1_000);
    expect(ticks[0]).toBe("2030-01-01T00:01:00.000Z");
    expect(ticks.at(-1)).toBe("2030-01-01T16:40:00.000Z");
    expect((await t.pawl.schedules.get("often")).nextAt).toEqual(new Date("2030-01-03T00:01:00Z"));
  });

  it.each([
    ["last", midnights(8, 8)],
    ["none", []],
    ["all", midnights(2, 8)],
  ] as const)(
    "%s also decides about the ticks of a week in which it was paused",
    async (catchUp, expected) => {
      const t = await aTest({ now: newYear });
      await t.serve([work]);
      await t.pawl.schedules.set("daily", { cron: "@daily", start: work, catchUp });
      await t.pawl.schedules.pause("daily");
      await t.advance("7d");
      await t.advance("6h");
      expect(await ticksOf(t, "work")).toEqual([]);
      expect(await t.pawl.schedules.get("daily")).toMatchObject({ paused: true, nextAt: null });
      await t.pawl.schedules.resume("daily");
      await t.drain();
      expect(await ticksOf(t, "work")).toEqual(expected);
      await t.advance("1d");
      expect(await ticksOf(t, "work")).toEqual([...expected, ...midnights(9, 9)]);
    },
  );
});
