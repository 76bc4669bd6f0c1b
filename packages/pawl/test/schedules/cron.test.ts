import { describe, expect, it } from "vitest";
import { latestTick, ticksAfter, ticksOf } from "../../src/schedules/cron.js";
import { planFiring } from "../../src/schedules/plan.js";

const cronTicks = (cron: string, timeZone = "UTC") => ticksOf({ cron, everyMs: null, timeZone });
const next = (cron: string, timeZone: string, from: string, count: number): string[] =>
  [...ticksAfter(cronTicks(cron, timeZone), Date.parse(from), count)].map((tick) =>
    new Date(tick).toISOString().replace(":00.000Z", "Z"),
  );

describe("when the clocks are set forward, a local time that does not exist is skipped", () => {
  it.each([
    // 02:00 to 03:00 on March 29
    ["Europe/Berlin", "30 2 * * *", "2026-03-27T12:00:00Z", ["2026-03-28T01:30Z", "2026-03-30T00:30Z"]],
    // 02:00 to 03:00 on March 8
    ["America/New_York", "30 2 * * *", "2026-03-06T12:00:00Z", ["2026-03-07T07:30Z", "2026-03-09T06:30Z"]],
    // 02:00 to 02:30 on October 4
    ["Australia/Lord_Howe", "15 2 * * *", "2026-10-02T00:00:00Z", ["2026-10-02T15:45Z", "2026-10-04T15:15Z"]],
  ])("in %s", (timeZone, cron, from, expected) => {
    expect(next(cron, timeZone, from, 2)).toEqual(expected);
  });

  it("and the others of that day fire", () => {
    expect(next("30 1,2,3 * * *", "Europe/Berlin", "2026-03-28T23:00:00Z", 3)).toEqual([
      "2026-03-29T00:30Z",
      "2026-03-29T01:30Z",
      "2026-03-29T23:30Z",
    ]);
  });
});

describe("when the clocks are set back, a local time that exists twice fires once, the first time", () => {
  it.each([
    // 03:00 to 02:00 on October 25
    [
      "Europe/Berlin",
      "30 2 * * *",
      "2026-10-23T12:00:00Z",
      ["2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"],
    ],
    // 02:00 to 01:00 on November 1
    [
      "America/New_York",
      "30 1 * * *",
      "2026-10-30T12:00:00Z",
      ["2026-10-31T05:30Z", "2026-11-01T05:30Z", "2026-11-02T06:30Z"],
    ],
    // 02:00 to 01:30 on April 5
    [
      "Australia/Lord_Howe",
      "45 1 * * *",
      "2026-04-03T00:00:00Z",
      ["2026-04-03T14:45Z", "2026-04-04T14:45Z", "2026-04-05T15:15Z"],
    ],
  ])("in %s", (timeZone, cron, from, expected) => {
    expect(next(cron, timeZone, from, 3)).toEqual(expected);
  });

  it("also if the last tick was in the repeated hour", () => {
    expect(next("*/30 * * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1)).toEqual(["2026-10-25T02:00Z"]);
  });
});

describe("the ticks of a cron expression", () => {
  const zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"];
  const changes = ["2026-03-08", "2026-03-29", "2026-04-04", "2026-10-03", "2026-10-25", "2026-11-01"];

  it.each(zones)("are those that a clock on the wall in %s shows for the first time", (timeZone) => {
    const format = new Intl.DateTimeFormat("en-GB", {
      timeZone,
      dateStyle: "short",
      timeStyle: "short",
    });
    for (const change of changes) {
      const from = Date.parse(change) - 86_400_000;
      const seen = new Set<string>();
      const expected: number[] = [];
      for (let at = from; at < from + 3 * 86_400_000; at += 60_000) {
        const shown = format.format(at);
        if (!seen.has(shown) && at > from && /:(00|15|30|45)$/.test(shown)) expected.push(at);
        seen.add(shown);
      }
      const ticks = [...ticksAfter(cronTicks("*/15 * * * *", timeZone), from, expected.length)];
      expect(ticks).toEqual(expected);
    }
  });

  it("know the last day of a month, names, steps, lists, seconds and shortcuts", () => {
    const from = "2026-01-30T12:00:00Z";
    expect(next("0 0 L * *", "UTC", from, 2)).toEqual(["2026-01-31T00:00Z", "2026-02-28T00:00Z"]);
    expect(next("0 9 * JAN,FEB MON-FRI", "UTC", from, 2)).toEqual(["2026-02-02T09:00Z", "2026-02-03T09:00Z"]);
    expect(next("*/20 12 * * *", "UTC", from, 2)).toEqual(["2026-01-30T12:20Z", "2026-01-30T12:40Z"]);
    expect(next("30 0 13 * * *", "UTC", from, 1)).toEqual(["2026-01-30T13:00:30.000Z"]);
    expect(next("@weekly", "UTC", from, 1)).toEqual(["2026-02-01T00:00Z"]);
    expect(next("0 0 29 2 *", "UTC", from, 1)).toEqual(["2028-02-29T00:00Z"]);
  });
});

describe("the latest tick", () => {
  it("is found without walking over all ticks, for every kind of timing", () => {
    const now = Date.parse("2026-10-25T02:10:07.500Z");
    const timings = [
      ...["* * * * * *", "*/7 * * * *", "30 2 * * *", "0 0 L * *", "0 0 1 1 *", "*/10 * 3 * * *"].map(
        (cron) => cronTicks(cron, "Europe/Berlin"),
      ),
      ticksOf({ cron: null, everyMs: 1_500, timeZone: "UTC" }),
      ticksOf({ cron: null, everyMs: 86_400_000, timeZone: "UTC" }),
    ];
    for (const ticks of timings) {
      const first = ticks.next(Date.parse("2024-05-05T00:00:00Z"))!;
      const latest = latestTick(ticks, first, now);
      expect(latest).toBeLessThanOrEqual(now);
      expect(ticks.next(latest)).toBeGreaterThan(now);
      expect(ticks.next(latest - 1)).toBe(latest);
    }
  });
});

describe("a plan", () => {
  const due = { name: "s", cron: null, everyMs: 60_000, timeZone: "UTC", offsetMs: 0 } as const;
  const at = (minute: number): Date => new Date(Date.UTC(2026, 0, 1, 0, minute));

  it("fires a tick that is due, and moves to the first one after the time of the database", () => {
    const plan = planFiring({ ...due, catchUp: "none", nextAt: at(1) }, new Date(at(1).getTime() + 40));
    expect(plan).toMatchObject({ expected: at(1), ticks: [at(1)], next: at(2), lateMs: 40 });
  });

  it("counts the offset of jitter: a tick is due only after it", () => {
    const now = new Date(at(3).getTime() + 10_000);
    const plan = planFiring({ ...due, offsetMs: 30_000, catchUp: "last", nextAt: at(1) }, now);
    expect(plan).toMatchObject({ ticks: [at(2)], next: at(3) });
  });

  it("with catchUp none, leaves out a lone tick that is more than a minute late", () => {
    const hourly = { ...due, everyMs: 3_600_000, catchUp: "none", nextAt: at(60) } as const;
    expect(planFiring(hourly, new Date(at(61).getTime())).ticks).toEqual([at(60)]);
    expect(planFiring(hourly, new Date(at(61).getTime() + 1)).ticks).toEqual([]);
  });
});
