import { InvalidInput, InvalidOption, job, RunNotFound } from "pawl";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { aTest, newYear } from "../../testing/test.js";
import { behind, ticksOf } from "./downtime.js";

const work = job({ name: "work", run: () => null });
const minutes = (n: number): string => new Date(newYear.getTime() + n * 60_000).toISOString();

describe("schedules.set", () => {
  it("changes nothing if the content is the same, and does not resume a paused schedule", async () => {
    const t = await aTest({ now: newYear });
    const nightly = { cron: "0 3 * * *", start: work, paused: false } as const;
    expect(await t.pawl.schedules.set("nightly", nightly)).toMatchObject({ changed: true, setAt: newYear });
    await t.advance("1h");
    expect(await t.pawl.schedules.set("nightly", nightly)).toMatchObject({ changed: false, setAt: newYear });
    await t.pawl.schedules.pause("nightly");
    expect(await t.pawl.schedules.set("nightly", nightly)).toMatchObject({ changed: false, paused: true });
    const changed = await t.pawl.schedules.set("nightly", { ...nightly, catchUp: "none" });
    expect(changed).toMatchObject({ changed: true, paused: false });
  });

  it("computes the next tick anew only if the cron, the interval or the time zone changes", async () => {
    const t = await aTest({ now: newYear });
    await t.serve([work]);
    await t.pawl.schedules.set("tick", { every: "1h", start: work });
    await t.advance("30m");
    const kept = await t.pawl.schedules.set("tick", { every: "1h", start: work, overlap: "allow" });
    expect(kept.nextAt?.toISOString()).toBe(minutes(60));
    const sooner = await t.pawl.schedules.set("tick", { every: "10m", start: work });
    expect(sooner.nextAt?.toISOString()).toBe(minutes(40));
    await t.advance("25m");
    expect(await ticksOf(t, "work")).toEqual([minutes(40), minutes(50)]);
  });

  it("takes the version of the definition, and by name the one that is served at the tick", async () => {
    const t = await aTest({ now: newYear });
    const second = job({ name: "work", version: 2, run: () => "second" });
    await t.serve([work, second]);
    await t.pawl.schedules.set("first", { every: "1h", start: work });
    await t.pawl.schedules.set("newest", { every: "1h", start: "work" });
    await t.advance("1h");
    const { runs } = await t.pawl.runs.list({ name: "work" });
    expect(runs.map(({ version, schedule }) => [schedule!.name, version]).toSorted()).toEqual([
      ["first", 1],
      ["newest", 2],
    ]);
  });

  it("passes the options of start to each run", async () => {
    const t = await aTest({ now: newYear });
    await t.pawl.schedules.set("low", {
      every: "1h",
      start: work,
      options: { queue: "low", priority: 7, delay: "5m", partitionKey: "one" },
    });
    await t.advance("1h");
    const { runs } = await t.pawl.runs.list({ name: "work" });
    expect(runs).toMatchObject([{ queue: "low", priority: 7, eligibleAt: new Date(minutes(65)) }]);
  });

  it.each<[why: string, options: object, message: RegExp]>([
    ["a field too few", { cron: "0 3 * *" }, /it has 4 fields, and it must have five or six/],
    ["a year", { cron: "0 0 3 * * * 2030" }, /it has 7 fields/],
    ["a minute out of range", { cron: "60 3 * * *" }, /the minute is out of range/],
    ["an unknown day", { cron: "0 3 * * FUN" }, /illegal characters/],
    ["an unknown shortcut", { cron: "@fortnightly" }, /no such shortcut; they are @yearly/],
    ["a date that never comes", { cron: "0 0 30 2 *" }, /never fires: no date matches/],
    ["an unknown time zone", { cron: "@daily", timeZone: "Mars/Base" }, /IANA name.*not "Mars\/Base"/],
    ["a misspelt time zone", { cron: "@daily", timeZone: "Europe/Berln" }, /did you mean "Europe\/Berlin"/],
    ["an offset as time zone", { cron: "@daily", timeZone: "+02:00" }, /IANA name/],
    ["both kinds", { cron: "@daily", every: "1h" }, /takes cron or every, and this one has both/],
    ["neither kind", {}, /takes cron or every, and this one has neither/],
    ["a zone with an interval", { every: "1h", timeZone: "UTC" }, /timeZone is for cron/],
    ["an interval below a second", { every: "999ms" }, /every must be at least 1s/],
    ["an unknown overlap", { every: "1h", overlap: "queue" }, /overlap must be one of skip, allow, cancel/],
    ["an unknown catchUp", { every: "1h", catchUp: "first" }, /catchUp must be one of last, none, all/],
    ["a long jitter", { every: "1h", jitter: "2d" }, /jitter must be at most a day/],
    ["an idempotency key", { every: "1h", options: { idempotencyKey: "k" } }, /leave idempotencyKey out/],
    ["a start time", { every: "1h", options: { at: new Date() } }, /leave at out/],
    [
      "an unknown option",
      { every: "1h", timezone: "UTC" },
      /unknown option "timezone".*did you mean "timeZone"/,
    ],
    ["an unknown limit", { every: "1h", options: { rateLimit: "none-such" } }, /none-such/],
  ])("refuses %s, before anything is written", async (_why, options, message) => {
    const t = await aTest({ now: newYear });
    const setting = t.pawl.schedules.set("wrong", { start: work, ...options });
    await expect(setting).rejects.toThrow(message);
    await expect(setting).rejects.toBeInstanceOf(InvalidOption);
    expect(await t.pawl.schedules.list()).toEqual([]);
  });

  it("checks the input against the schema of the definition", async () => {
    const t = await aTest({ now: newYear });
    const strict = job({ name: "strict", input: z.object({ days: z.number() }), run: () => null });
    await t.pawl.schedules.set("good", { every: "1h", start: strict, input: { days: 1 } });
    const setting = t.pawl.schedules.set("bad", {
      every: "1h",
      start: strict,
      input: { days: "one" as never },
    });
    await expect(setting).rejects.toBeInstanceOf(InvalidInput);
    expect((await t.pawl.schedules.list()).map(({ name }) => name)).toEqual(["good"]);
  });
});

describe("a user's idempotency key", () => {
  it("must not be one of a schedule", async () => {
    const t = await aTest({ now: newYear });
    const starting = t.pawl.start(work, undefined, { idempotencyKey: "schedule/nightly/x" });
    await expect(starting).rejects.toThrow(/reserved for the runs of schedules/);
  });
});

describe("trigger", () => {
  it("starts a run each time, also of a paused schedule, and moves no tick", async () => {
    const t = await aTest({ now: newYear });
    await t.serve([work]);
    await t.pawl.schedules.set("hand", { every: "1h", start: work, paused: true });
    const first = await t.pawl.schedules.trigger("hand");
    const second = await t.pawl.schedules.trigger("hand");
    expect(first.runId).not.toBe(second.runId);
    expect(await t.pawl.result(first.runId)).toBe(null);
    expect((await t.pawl.runs.get(second.runId)).schedule).toEqual({ name: "hand", at: newYear });
    await t.pawl.schedules.resume("hand");
    await t.advance("1h");
    expect(await ticksOf(t, "work")).toEqual([minutes(0), minutes(0), minutes(60)]);
  });
});

describe("backfill", () => {
  it("starts one run per tick of the range, and a second call starts none", async () => {
    const t = await aTest({ now: newYear });
    await t.serve([work]);
    await t.pawl.schedules.set("daily", { cron: "@daily", start: work });
    await t.advance("1d");
    const range = { from: "2029-12-28T00:00:00Z", to: "2030-01-03T00:00:00Z" };
    const filled = await t.pawl.schedules.backfill("daily", range);
    const days = ["2029-12-28", "2029-12-29", "2029-12-30", "2029-12-31", "2030-01-01", "2030-01-02"];
    expect(filled.started).toBe(5);
    expect(filled.runs.map(({ at, created }) => [at.toISOString().slice(0, 10), created])).toEqual(
      days.map((day) => [day, day !== "2030-01-02"]),
    );
    const again = await t.pawl.schedules.backfill("daily", range);
    expect(again.started).toBe(0);
    expect(again.runs.map(({ runId }) => runId)).toEqual(filled.runs.map(({ runId }) => runId));
    await t.drain();
    expect(await t.pawl.runs.count({ name: "work" })).toBe(6);
  });

  it("starts no run for a tick that has not come yet, so that it fires in its time", async () => {
    const t = await aTest({ now: newYear });
    await t.serve([work]);
    await t.pawl.schedules.set("daily", { cron: "@daily", start: work });
    const range = { from: newYear, to: new Date("2031-01-01") };
    expect((await t.pawl.schedules.backfill("daily", range)).started).toBe(1);
    await t.advance("1d");
    expect((await ticksOf(t, "work")).map((at) => at.slice(0, 10))).toEqual(["2030-01-01", "2030-01-02"]);
  });

  it("refuses a range of more than 10,000 ticks, and one that is empty", async () => {
    const t = await aTest({ now: newYear });
    await t.pawl.schedules.set("often", { every: "1s", start: work, paused: true });
    const many = t.pawl.schedules.backfill("often", { from: "2029-12-31", to: "2030-01-01" });
    await expect(many).rejects.toThrow(/more than 10000 ticks.*backfill a shorter range/);
    const empty = t.pawl.schedules.backfill("often", { from: "2030-01-01", to: "2030-01-01" });
    await expect(empty).rejects.toThrow(/is not before to/);
    expect(await t.pawl.runs.count({ name: "work" })).toBe(0);
  });
});

describe("a schedule that does not exist", () => {
  it("is not found by any call, and removing it does nothing", async () => {
    const t = await aTest({ now: newYear });
    const { get, pause, resume, trigger, backfill, remove } = t.pawl.schedules;
    const fill = (name: string) => backfill(name, { from: "2029-01-01", to: newYear });
    for (const call of [get, pause, resume, trigger, fill])
      await expect(call("nobody")).rejects.toBeInstanceOf(RunNotFound);
    expect(await remove("nobody")).toEqual({ removed: false });
  });

  it("starts no more runs once it is removed, and its runs stay", async () => {
    const t = await aTest({ now: newYear });
    await t.serve([work]);
    await t.pawl.schedules.set("short", { every: "1h", start: work });
    await t.advance("1h");
    expect(await t.pawl.schedules.remove("short")).toEqual({ removed: true });
    await t.advance("5h");
    expect(await ticksOf(t, "work")).toEqual([minutes(60)]);
  });
});

describe("a schedule whose run the database refuses", () => {
  it("records the error, tries again at its next tick, and stops no other schedule", async () => {
    const t = await aTest({ now: newYear });
    await t.serve([work]);
    await t.pawl.limits.set("gone", { allowed: 100, period: "1s" });
    await t.pawl.schedules.set("bad", { every: "1h", start: work, options: { rateLimit: "gone" } });
    await t.pawl.schedules.set("good", { every: "1h", start: work });
    await behind(t, "delete from pawl.limits");
    await t.advance("1h");
    expect(await ticksOf(t, "work")).toEqual([minutes(60)]);
    const bad = await t.pawl.schedules.get("bad");
    expect(bad.problem).toMatch(/the last tick could not start a run of work@1: .*gone/);
    expect(bad.nextAt?.toISOString()).toBe(minutes(120));
    await t.pawl.limits.set("gone", { allowed: 100, period: "1s" });
    await t.advance("1h");
    expect(await t.pawl.schedules.get("bad")).toMatchObject({
      problem: null,
      lastAt: new Date(minutes(120)),
    });
  });
});

describe("the problem of a schedule", () => {
  it("says that nobody serves its definition, and that its last run failed", async () => {
    const t = await aTest({ now: newYear });
    const broken = job({ name: "broken", maxAttempts: 1, run: () => Promise.reject(new Error("no disk")) });
    await t.pawl.schedules.set("broken", { every: "1h", start: broken });
    expect((await t.pawl.schedules.get("broken")).problem).toMatch(/no live worker serves broken@1/);
    await t.serve([broken]);
    expect((await t.pawl.schedules.get("broken")).problem).toBe(null);
    await t.advance("1h");
    expect((await t.pawl.schedules.list())[0]!.problem).toMatch(/its last run \d+ failed: no disk/);
  });
});
