import { workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { journalOf, makeDue, recordedBy, suspended } from "../../support/journal.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

/** Nothing but a known due time, or a nudge, wakes such a worker. */
const rarely = { pollInterval: "1h", maxPollInterval: "1h" } as const;

const dueOf = async (runId: string, name: string): Promise<Date> => {
  const [row] = await sql<{ due_at: Date }>("select due_at from steps where run_id = $1 and name = $2", [
    runId,
    name,
  ]);
  return row!.due_at;
};
const now = async (): Promise<Date> => (await sql<{ at: Date }>("select clock_timestamp() as at"))[0]!.at;

describe("sleeps that were over while nobody served the run", () => {
  it("end in the order in which they were due, whatever the order of the calls", async () => {
    const napping = workflow({
      name: "napping",
      run: ({ step }) =>
        Promise.race([
          step.sleep("long", "2h").then(() => "long"),
          step.sleep("short", "1h").then(() => "short"),
        ]),
    });
    const worker = await serve([napping]);
    const { runId } = await pawl.start(napping);
    await until("it sleeps", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
    await worker.stop();
    await database.sql("update steps set due_at = due_at - interval '1 day' where run_id = $1", [runId]);
    await database.sql("update runs set eligible_at = eligible_at - interval '1 day' where id = $1", [runId]);
    await serve([napping]);
    expect(await pawl.result(runId)).toBe("short");
  });
});

describe("sleep", () => {
  it("takes the run off its worker and goes on when due, never early by the database clock, with polls an hour apart", async () => {
    const seen: { at: Date; due: Date }[] = [];
    const napping = workflow({
      name: "napping",
      queue: "napping",
      run: async ({ step, runId }) => {
        for (const index of [0, 1, 2]) {
          await step.sleep(`nap-${index}`, 30);
          seen.push({ at: await now(), due: await dueOf(runId, `nap-${index}`) });
        }
        return "awake";
      },
    });
    await serve([napping], rarely);
    const { runId } = await pawl.start(napping);
    expect(await pawl.result(runId)).toBe("awake");
    expect(seen.length).toBeGreaterThanOrEqual(3);
    for (const { at, due } of seen) expect(at.getTime()).toBeGreaterThanOrEqual(due.getTime());
    expect(await journalOf(database, runId)).toMatchObject(
      [0, 1, 2].map((index) => ({ name: `nap-${index}`, kind: "sleep", completed: true, seq: index + 1 })),
    );
  });

  it("until a Date: that very time is recorded", async () => {
    const at = new Date("2100-01-02T03:04:05.678Z");
    const dated = workflow({ name: "dated", run: async ({ step }) => step.sleep("until", at) });
    await serve([dated]);
    const { runId } = await pawl.start(dated);
    await suspended(database, runId);
    expect(await dueOf(runId, "until")).toEqual(at);
    expect((await pawl.runs.get(runId)).eligibleAt).toEqual(at);
    await makeDue(database, runId);
    expect(await pawl.result(runId)).toBeNull();
  });

  it("until a time that has passed does not suspend", async () => {
    let calls = 0;
    const past = workflow({
      name: "past",
      run: async ({ step }) => {
        calls++;
        await step.sleep("epoch", new Date(0));
        await step.sleep("nothing", 0);
        return "there";
      },
    });
    await serve([past]);
    expect(await pawl.result((await pawl.start(past)).runId)).toBe("there");
    expect(calls).toBe(1);
  });

  it("a time that the database cannot hold is an error of the call", async () => {
    const far = workflow({
      name: "far",
      run: async ({ step }) => {
        const failure: unknown = await step.sleep("far", new Date(8.64e15)).catch((error: unknown) => error);
        return (failure as Error).message;
      },
    });
    await serve([far]);
    expect(await pawl.result((await pawl.start(far)).runId)).toMatch(/./);
  });

  it("the due time of a sleep is recorded at first encounter: resumes before it do not move it", async () => {
    const resumed = workflow({
      name: "resumed",
      run: async ({ step }) => {
        const nap = step.sleep("nap", "1h");
        await step.waitForEvent("poke-1");
        await step.waitForEvent("poke-2");
        await nap;
        return "rested";
      },
    });
    await serve([resumed]);
    const { runId } = await pawl.start(resumed);
    await suspended(database, runId);
    const due = await dueOf(runId, "nap");
    for (const poke of ["poke-1", "poke-2"]) {
      await pawl.signal(runId, poke, {});
      await until(`${poke} is recorded`, async () => (await recordedBy(database, runId)).includes(poke));
      await suspended(database, runId);
      expect(await dueOf(runId, "nap")).toEqual(due);
    }
    const [row] = await sql("select eligible_at from runs where id = $1", [runId]);
    expect(row).toEqual({ eligible_at: due });
    await makeDue(database, runId);
    expect(await pawl.result(runId)).toBe("rested");
  });

  it("of several sleeps at once, the run wakes for the first, then sleeps on for the next", async () => {
    const several = workflow({
      name: "several",
      run: async ({ step }) => {
        const order: string[] = [];
        const naps = (["3h", "1h", "2h"] as const).map(async (long) => {
          await step.sleep(long, long);
          order.push(long);
        });
        await Promise.all(naps);
        return order;
      },
    });
    await serve([several]);
    const { runId } = await pawl.start(several);
    for (const [index, next] of ["1h", "2h", "3h"].entries()) {
      await until(`it sleeps for ${next}`, async () => (await recordedBy(database, runId)).length === index);
      await suspended(database, runId);
      const [row] = await sql<{ eligible_at: Date }>("select eligible_at from runs where id = $1", [runId]);
      expect(row!.eligible_at).toEqual(await dueOf(runId, next));
      await sql("update steps set due_at = clock_timestamp() where run_id = $1 and name = $2", [runId, next]);
      await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
    }
    expect(await pawl.result(runId)).toEqual(["1h", "2h", "3h"]);
    expect(await recordedBy(database, runId)).toEqual(["1h", "2h", "3h"]);
  });

  it("a timer beside a long step fires while that runs, and a later one too", async () => {
    const running = gate();
    const ticking = workflow({
      name: "ticking",
      queue: "ticking",
      run: async ({ step }) => {
        const long = step.run("long", async () => running.pass());
        await step.sleep("tick", 20);
        const timeout = await step.waitForEvent("never", { timeout: 20 });
        await step.run("reminded", () => timeout);
        await long;
      },
    });
    await serve([ticking], rarely);
    const { runId } = await pawl.start(ticking);
    await until("the timers have fired", async () => (await recordedBy(database, runId)).length === 3);
    expect(await recordedBy(database, runId)).toEqual(["tick", "never", "reminded"]);
    expect(running.entered()).toBe(1);
    running.open();
    await pawl.result(runId);
  });

  it("a sleeping run holds no claim, and its worker may stop: another one goes on", async () => {
    let calls = 0;
    const moved = workflow({
      name: "moved",
      run: async ({ step }) => {
        calls++;
        const one = await step.run("one", () => calls);
        await step.sleep("nap", "1h");
        return one;
      },
    });
    const first = await serve([moved]);
    const { runId } = await pawl.start(moved);
    await suspended(database, runId);
    await first.stop();
    expect(await sql("select from runs where locked_by is not null")).toEqual([]);
    await serve([moved]);
    await makeDue(database, runId);
    expect(await pawl.result(runId)).toBe(1);
    expect(calls).toBe(2);
  });
});
