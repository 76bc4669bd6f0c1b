import { job, machine, type, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { aTest, day, hour, later, newYear, second } from "./test.js";

const once = { attempts: 2, backoff: { kind: "fixed", base: "5m", jitter: 0 } } as const;

describe("the clock of a test", () => {
  it("stands still until it is moved", async () => {
    const t = await aTest({ now: newYear });
    const nap = workflow({ name: "nap", run: ({ step }) => step.sleep("nap", 1).then(() => "awake") });
    await t.serve([nap]);
    const { runId } = await t.pawl.start(nap);
    await t.drain();
    expect(t.now()).toEqual(newYear);
    expect(await t.pawl.runs.get(runId)).toMatchObject({ status: "running", startedAt: newYear });
    await t.advance(1);
    expect(await t.pawl.result(runId)).toBe("awake");
    expect(t.now().toISOString()).toBe(later(1));
  });

  it("begins at the present", async () => {
    const before = Date.now();
    const t = await aTest();
    expect(t.now().getTime()).toBeGreaterThanOrEqual(before - second);
    expect(t.now().getTime()).toBeLessThanOrEqual(Date.now() + second);
  });

  it("fires everything in the order of its time, each with the clock at its time, also what was set meanwhile", async () => {
    const t = await aTest({ now: newYear });
    const seen: [what: string, at: string][] = [];
    const tell = (what: string): number => seen.push([what, t.now().toISOString()]);
    const sleeper = workflow({
      name: "sleeper",
      run: async ({ step }, hours: number) => {
        await step.sleep("first", hours * hour);
        await step.run("woke", () => tell(`woke after ${hours} h`));
        await step.sleep("second", "30m");
        tell(`woke again after ${hours} h`);
      },
    });
    const flaky = workflow({
      name: "flaky",
      run: async ({ step }) => {
        await step.run(
          "try",
          ({ attempt }) => {
            tell(`attempt ${attempt} of the step`);
            if (attempt === 0) throw new Error("not yet");
          },
          { retry: once },
        );
        const event = await step.waitForEvent("never", { timeout: "2h" });
        tell(`the event is ${JSON.stringify(event)}`);
      },
    });
    const waiting = machine({
      name: "waiting",
      state: type<{ order: number }>(),
      steps: {
        start: (ctx) => ctx.awaitSignal("paid", "late", ctx.state, { timeout: "95m" }),
        late: (ctx) => {
          tell(`the machine has ${ctx.timedOut ? "timed out" : "a signal"}`);
          return ctx.attempt === 0 ? ctx.retry(ctx.state, "10s") : ctx.done(null);
        },
      },
    });
    const failing = job({
      name: "failing",
      maxAttempts: 3,
      backoff: (attempt) => (attempt + 1) * 20 * 60 * second,
      run: ({ attempt }) => {
        tell(`attempt ${attempt} of the job`);
        if (attempt < 2) throw new Error("not yet");
      },
    });
    await t.serve([sleeper, flaky, waiting, failing]);
    await t.pawl.start(sleeper, 2);
    await t.pawl.start(sleeper, 1);
    await t.pawl.start(flaky);
    await t.pawl.start(waiting, { order: 1 });
    await t.pawl.start(failing, undefined, { delay: "1m" });
    await t.pawl.start(failing, undefined, { at: new Date(newYear.getTime() + 3 * hour) });
    await t.advance("1d");
    const minute = 60 * second;
    expect(seen).toEqual([
      ["attempt 0 of the step", later(0)],
      ["attempt 0 of the job", later(minute)],
      ["attempt 1 of the step", later(5 * minute)],
      ["attempt 1 of the job", later(21 * minute)],
      ["woke after 1 h", later(60 * minute)],
      ["attempt 2 of the job", later(61 * minute)],
      ["woke again after 1 h", later(90 * minute)],
      ["the machine has timed out", later(95 * minute)],
      ["the machine has timed out", later(95 * minute + 10 * second)],
      ["woke after 2 h", later(2 * hour)],
      ["the event is null", later(125 * minute)],
      ["woke again after 2 h", later(150 * minute)],
      ["attempt 0 of the job", later(3 * hour)],
      ["attempt 1 of the job", later(3 * hour + 20 * minute)],
      ["attempt 2 of the job", later(4 * hour)],
    ]);
    expect(t.now().toISOString()).toBe(later(day));
  });

  it("fires nothing early", async () => {
    const t = await aTest({ now: newYear });
    const nap = workflow({ name: "nap", run: ({ step }) => step.sleep("nap", "1h") });
    await t.serve([nap]);
    const { runId } = await t.pawl.start(nap);
    await t.advance(hour - 1);
    expect(await t.pawl.why(runId)).toMatchObject({ reason: "suspended", until: new Date(later(hour)) });
    await t.advance(1);
    expect((await t.pawl.runs.get(runId)).completedAt?.toISOString()).toBe(later(hour));
  });

  it("moves to a date, and never back", async () => {
    const t = await aTest({ now: newYear });
    await t.at(new Date(later(day)));
    expect(t.now().toISOString()).toBe(later(day));
    await t.at(t.now());
    await expect(t.at(newYear)).rejects.toThrow(
      /cannot go back to 2030-01-01T00:00:00.000Z: it is 2030-01-02T00:00:00.000Z/,
    );
    await expect(t.at("tomorrow" as never)).rejects.toThrow("must be a valid Date");
    await expect(t.advance("-1s")).rejects.toThrow("must be a duration");
    expect(t.now().toISOString()).toBe(later(day));
  });

  it("fills rate limits", async () => {
    const t = await aTest({ now: newYear });
    const at: string[] = [];
    const call = job({ name: "call", run: () => void at.push(t.now().toISOString()) });
    await t.serve([call], { limits: { api: { allowed: 2, period: "1m" } } });
    await t.pawl.startMany(
      call,
      [1, 2, 3, 4, 5].map(() => ({ input: undefined, rateLimit: "api" })),
    );
    await t.drain();
    expect(at).toEqual([later(0), later(0)]);
    await t.advance("2m");
    // A token is whole a microsecond after half a minute.
    expect(at.slice(2)).toEqual([later(30 * second), later(60 * second), later(90 * second)]);
  });

  it("ends the retention of runs", async () => {
    const t = await aTest({ now: newYear });
    const short = job({ name: "short", retention: "2d", run: () => 1 });
    const long = job({ name: "long", retention: "4d", run: () => 1 });
    await t.serve([short, long]);
    const started = [await t.pawl.start(short), await t.pawl.start(long)];
    await t.advance("3d");
    const { runs } = await t.pawl.runs.list();
    expect(runs.map(({ runId }) => runId)).toEqual([started[1]!.runId]);
    await t.advance("1d");
    expect((await t.pawl.runs.list()).runs).toEqual([]);
  });

  it("prompts a retry that waits in its slot", async () => {
    const t = await aTest({ now: newYear });
    const at: string[] = [];
    let bodies = 0;
    const flaky = workflow({
      name: "flaky",
      run: async ({ step }) => {
        bodies++;
        await step.run(
          "try",
          ({ attempt }) => {
            at.push(t.now().toISOString());
            if (attempt < 3) throw new Error("not yet");
          },
          { retry: { attempts: 4, backoff: { kind: "fixed", base: 10, jitter: 0 } } },
        );
      },
    });
    await t.serve([flaky]);
    const { runId } = await t.pawl.start(flaky);
    await t.drain();
    expect(await t.pawl.why(runId)).toMatchObject({ reason: "executing" });
    await t.advance(20);
    expect(at).toEqual([later(0), later(10), later(20)]);
    await t.advance(10);
    expect(at).toEqual([later(0), later(10), later(20), later(30)]);
    expect((await t.pawl.runs.get(runId)).status).toBe("completed");
    expect(bodies).toBe(1);
  });

  it("goes on although a function beside a timer does not return", async () => {
    const t = await aTest({ now: newYear });
    const race = workflow({
      name: "race",
      run: async ({ step }) => {
        const winner = await Promise.race([
          step.run("endless", () => new Promise<string>(() => {})),
          step.sleep("deadline", "1h").then(() => "deadline"),
          step.waitForEvent("answer", { timeout: "2h" }),
        ]);
        return [winner, t.now().toISOString()];
      },
    });
    await t.serve([race]);
    const { runId } = await t.pawl.start(race);
    await t.advance("30m");
    expect((await t.pawl.runs.get(runId)).status).toBe("running");
    await t.advance("1d");
    expect(await t.pawl.result(runId)).toEqual(["deadline", later(hour)]);
  });

  it("moves no lease", async () => {
    const t = await aTest({ now: newYear });
    const endless = workflow({
      name: "endless",
      run: ({ step }) =>
        Promise.race([step.run("endless", () => new Promise<void>(() => {})), step.sleep("deadline", "40d")]),
    });
    await t.serve([endless]);
    const { runId } = await t.pawl.start(endless);
    await t.advance("30d");
    expect(await t.pawl.runs.get(runId)).toMatchObject({ status: "running", phase: "executing", attempt: 0 });
  });
});
