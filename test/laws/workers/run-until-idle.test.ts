/** `runUntilIdle`: a worker for functions that live only for a moment. */

import { type IdleReport, job, runUntilIdle, workflow } from "pawl";
import { afterEach, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent, testEngine } from "../../support/engine.js";
import { claimOne } from "../../support/store.js";

const database = await testDatabase();
const { sql, url } = database;
const { pawl } = testEngine(database);

const queue = "moment";
const double = job({ name: "double", queue, run: (_ctx, n: number) => n * 2 });
const sum = workflow({
  name: "sum",
  queue,
  run: async ({ step }, numbers: number[]) => {
    const doubled = await Promise.all(numbers.map((n) => step.invoke(`double-${n}`, double, n)));
    return step.run("add", () => doubled.reduce((total, n) => total + n, 0));
  },
});
const broken = job({
  name: "broken",
  queue,
  maxAttempts: 1,
  run: () => {
    throw new Error("no");
  },
});
/** Executes until its signal is aborted. */
let begun = 0;
const endless = job({
  name: "endless",
  queue,
  run: (ctx) =>
    new Promise<never>((_resolve, reject) => {
      begun++;
      ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error));
    }),
});
const options = { url, budget: "60s", logger: silent } as const;
const definitions = [double, sum, broken, endless];

afterEach(async () => {
  await sql("delete from runs");
  await sql("delete from workers");
  await sql("delete from schedules");
});

describe("runUntilIdle", () => {
  it("works off everything that is due, with what follows from it, and leaves no worker behind", async () => {
    const { runId } = await pawl.start(sum, [1, 2, 3]);
    await pawl.start(broken, null);
    const report = await runUntilIdle(definitions, options);
    expect(report).toEqual({ completed: 4, failed: 1, cancelled: 0, isIdle: true, nextDueAt: null });
    expect(await pawl.result(runId)).toBe(12);
    expect(await sql("select id from workers")).toEqual([]);
  });

  it("ends at once if nothing is due, and says when the next run is", async () => {
    const { runId } = await pawl.start(double, 1, { delay: "1h" });
    const { nextDueAt, ...rest } = await runUntilIdle(definitions, options);
    expect(rest).toEqual({ completed: 0, failed: 0, cancelled: 0, isIdle: true });
    const [run] = await sql<{ at: Date }>("select eligible_at as at from runs where id = $1", [runId]);
    expect(Math.abs(nextDueAt!.getTime() - run!.at.getTime())).toBeLessThan(60_000);
  });

  it("knows the schedules of its definitions, and starts what is due by them", async () => {
    const schedules = { often: { every: "1h", start: double, input: 4 } } as const;
    const { nextDueAt } = await runUntilIdle(definitions, { ...options, schedules });
    expect(nextDueAt!.getTime()).toBeGreaterThan(Date.now());
    await sql(
      "update schedules set next_at = next_at - interval '1 hour', due_at = due_at - interval '1 hour'",
    );
    expect(await runUntilIdle(definitions, options)).toMatchObject({ completed: 1, isIdle: true });
  });

  it("releases what its budget does not suffice for, without an attempt, and is due again now", async () => {
    const { runId } = await pawl.start(endless, null);
    // On a machine that is busy with other work, a second does not suffice to begin.
    let report: IdleReport | undefined;
    for (let seconds = 1; begun === 0; seconds *= 2) {
      const budget = { budget: `${seconds}s`, drainTimeout: 100 } as const;
      report = await runUntilIdle(definitions, { ...options, ...budget }).catch((error: unknown) => {
        expect(error).toMatchObject({ code: "Unavailable" });
        return undefined;
      });
    }
    expect(report).toMatchObject({ completed: 0, isIdle: false });
    expect(report!.nextDueAt!.getTime()).toBeLessThanOrEqual(Date.now());
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "runnable", attempt: 0 });
  });

  it("waits for runs of a function that died, until it may reclaim them", async () => {
    const definition = { name: "double", version: 1, kind: "job", queue, priority: 0, retentionMs: 60_000 };
    await database.store.register({
      workerId: "dead",
      leaseMs: 600_000,
      queues: [queue],
      info: "{}",
      definitions: [definition],
    });
    const { runId } = await pawl.start(double, 21);
    await claimOne(database, { workerId: "dead", queue, names: ["double"], versions: [1] });
    await sql(
      "update workers set lease = interval '1 second', seen_at = clock_timestamp() - interval '2 seconds'",
    );
    expect(await runUntilIdle(definitions, options)).toMatchObject({ completed: 1, isIdle: true });
    expect(await pawl.runs.get(runId)).toMatchObject({ status: "completed", attempt: 1 });
    expect(await pawl.result(runId)).toBe(42);
  });

  it("does not wait for runs of a paused queue", async () => {
    await pawl.start(double, 1);
    await pawl.queues.pause(queue);
    expect(await runUntilIdle(definitions, options)).toMatchObject({
      completed: 0,
      isIdle: true,
      nextDueAt: null,
    });
    await pawl.queues.resume(queue);
    expect(await runUntilIdle(definitions, options)).toMatchObject({ completed: 1, isIdle: true });
  });

  it("refuses a server, a budget that is too short, and options that it does not know", async () => {
    await expect(runUntilIdle([double], { url: "http://localhost:1" })).rejects.toThrow(/postgres:\/\/ URL/);
    await expect(runUntilIdle([double], { url, budget: "10ms" })).rejects.toThrow(
      /budget must be from 1 second/,
    );
    await expect(runUntilIdle([double], { url, drainTimeout: "1m" })).rejects.toThrow(/shorter than budget/);
    await expect(runUntilIdle([], { url })).rejects.toThrow(/runUntilIdle takes a list of definitions/);
  });
});
