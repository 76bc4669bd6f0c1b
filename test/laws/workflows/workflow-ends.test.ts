import { RunCancelled, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { journalOf, recordedBy, suspended } from "../../support/journal.js";
import { claimOne, register } from "../../support/store.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, store } = database;

const rowOf = async (runId: string) =>
  (
    await sql<{
      status: string;
      locked_by: string | null;
      attempt: number;
      crashes: number;
      crash_seq: number;
    }>("select status, locked_by, attempt, crashes, crash_seq from runs where id = $1", [runId])
  )[0]!;

describe("cancel", () => {
  it("ends a suspended workflow at once; a later signal is refused, its body is never called again", async () => {
    let calls = 0;
    const waiting = workflow({
      name: "waiting",
      run: async ({ step }) => (calls++, step.waitForEvent("go", { timeout: "1h" })),
    });
    await serve([waiting]);
    const { runId } = await pawl.start(waiting);
    await suspended(database, runId);
    await pawl.runs.cancel(runId, { reason: "enough" });
    await expect(pawl.result(runId)).rejects.toThrow(RunCancelled);
    await expect(pawl.signal(runId, "go", {})).rejects.toMatchObject({ code: "RunEnded" });
    expect(calls).toBe(1);
  });

  it("of a running workflow aborts ctx.signal and the signal of its step; nothing after it runs or is recorded", async () => {
    const running = gate();
    const signals: AbortSignal[] = [];
    const after: string[] = [];
    const busy = workflow({
      name: "busy",
      run: async (ctx) => {
        await ctx.step.run("before", () => 1);
        await ctx.step.run("long", async ({ signal }) => {
          signals.push(ctx.signal, signal);
          await running.pass();
        });
        after.push("body");
        await ctx.step.run("after", () => after.push("step"));
      },
    });
    await serve([busy]);
    const { runId } = await pawl.start(busy);
    await until("it runs", running.entered);
    await pawl.runs.cancel(runId, { reason: "enough" });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect((signals[1]!.reason as Error).message).toMatch(/enough/);
    expect((await rowOf(runId)).status).toBe("cancelled");
    running.open();
    await until("its worker has let it go", async () => (await rowOf(runId)).locked_by === null);
    expect(await recordedBy(database, runId)).toEqual(["before"]);
    expect(after).toEqual([]);
  });

  it("a cancel from another process reaches the worker with the next heartbeat", async () => {
    const running = gate();
    let aborted: Promise<void> | undefined;
    const afar = workflow({
      name: "afar",
      run: async ({ step }) =>
        step.run("long", async ({ signal }) => {
          aborted = new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
          await running.pass();
        }),
    });
    await serve([afar]);
    const { runId } = await pawl.start(afar);
    await until("it runs", running.entered);
    await store.cancel(runId, { reason: null, cascade: false });
    await aborted;
    running.open();
    await until("its worker has let it go", async () => (await rowOf(runId)).locked_by === null);
  });
});

describe("a worker that stops", () => {
  it("lets the running step finish: its outcome counts, nothing new begins, another worker goes on from there", async () => {
    const running = gate();
    const called: string[] = [];
    const moving = workflow({
      name: "moving",
      run: async ({ step }) => {
        called.push("body");
        const one = await step.run("one", async () => (called.push("one"), await running.pass(), "one"));
        const two = await step.run("two", () => (called.push("two"), "two"));
        return [one, two];
      },
    });
    const first = await serve([moving], { drainTimeout: "20s" });
    const { runId } = await pawl.start(moving);
    await until("it runs", running.entered);
    const stopping = first.stop();
    running.open();
    await stopping;
    expect(called).toEqual(["body", "one"]);
    expect(await recordedBy(database, runId)).toEqual(["one"]);
    expect(await rowOf(runId)).toMatchObject({ status: "runnable", attempt: 0, crashes: 0, locked_by: null });
    await serve([moving]);
    expect(await pawl.result(runId)).toEqual(["one", "two"]);
    expect(called).toEqual(["body", "one", "body", "two"]);
  });

  it("a body that ends, or suspends, while its worker stops is committed", async () => {
    const running = gate();
    const ending = workflow({
      name: "ending",
      run: async ({ step }) => step.run("last", async () => (await running.pass(), "ended")),
    });
    const sleeping = workflow({
      name: "sleeping",
      run: async ({ step }) => {
        await step.run("first", async () => running.pass());
        await step.sleep("nap", "1h");
      },
    });
    const worker = await serve([ending, sleeping], { drainTimeout: "20s" });
    const one = await pawl.start(ending);
    const other = await pawl.start(sleeping);
    await until("both run", () => running.entered() === 2);
    const stopping = worker.stop();
    running.open();
    await stopping;
    expect((await pawl.runs.get(one.runId)).output).toBe("ended");
    expect(await rowOf(other.runId)).toMatchObject({ status: "awaiting_signal", locked_by: null });
    expect(await recordedBy(database, other.runId)).toEqual(["first"]);
  });

  it("an error that a step throws because it was told to stop is not recorded, and uses no attempt", async () => {
    const running = gate();
    const attempts: number[] = [];
    const obedient = workflow({
      name: "obedient",
      run: async ({ step }) =>
        step.run("long", async ({ attempt, signal }) => {
          attempts.push(attempt);
          if (attempts.length > 1) return "done";
          void running.pass();
          await new Promise((_resolve, reject) =>
            signal.addEventListener("abort", () => reject(new Error("told"))),
          );
          return "never";
        }),
    });
    const worker = await serve([obedient], { drainTimeout: 0 });
    const { runId } = await pawl.start(obedient);
    await until("it runs", running.entered);
    await worker.stop();
    expect(await journalOf(database, runId)).toEqual([]);
    expect(await rowOf(runId)).toMatchObject({ status: "runnable", crashes: 0, locked_by: null });
    await serve([obedient]);
    expect(await pawl.result(runId)).toBe("done");
    expect(attempts).toEqual([0, 0]);
  });

  it("an error that the body throws because it was told to stop fails nothing", async () => {
    const running = gate();
    let calls = 0;
    const listening = workflow({
      name: "listening",
      run: async ({ step, signal }) => {
        const one = await step.run("one", () => 1);
        if (++calls > 1) return one;
        void running.pass();
        await new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(new Error("told"))),
        );
        return 0;
      },
    });
    const worker = await serve([listening], { drainTimeout: 0 });
    const { runId } = await pawl.start(listening);
    await until("it runs", running.entered);
    await worker.stop();
    expect(await rowOf(runId)).toMatchObject({ status: "runnable", attempt: 0, crashes: 0, locked_by: null });
    await serve([listening]);
    expect(await pawl.result(runId)).toBe(1);
  });

  it("a step that ignores the stop is left behind; what it does later is not recorded", async () => {
    const deaf = gate();
    let calls = 0;
    const stubborn = workflow({
      name: "stubborn",
      run: async ({ step }) =>
        step.run("deaf", async () => {
          const mine = ++calls;
          if (mine === 1) await deaf.pass();
          return mine;
        }),
    });
    const worker = await serve([stubborn], { drainTimeout: 0 });
    const { runId } = await pawl.start(stubborn);
    await until("it runs", deaf.entered);
    await worker.stop();
    await serve([stubborn]);
    deaf.open();
    expect(await pawl.result(runId)).toBe(2);
  });
});

describe("a worker that dies", () => {
  /** A worker that claims a run and is never heard of again; another one may judge it at once. */
  const dieWith = async (runId: string, name: string): Promise<void> => {
    await sql(
      "update workers set seen_at = seen_at - interval '1 day' where id = (select locked_by from runs where id = $1)",
      [runId],
    );
    await sql("update settings set beats_since = clock_timestamp() - interval '1 day'");
    await until(`${name} is reaped`, async () => {
      await store.reap(100);
      return (await rowOf(runId)).locked_by === null;
    });
  };

  /** Claims the run as a worker that dies, having recorded these steps. */
  const crash = async (runId: string, name: string, steps: readonly string[] = []): Promise<void> => {
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
    await register(database, "dying");
    const claimed = await claimOne(database, { workerId: "dying", names: [name] });
    expect(claimed.runId).toBe(runId);
    const highest = Math.max(0, ...(claimed.journal ?? []).map(({ seq }) => seq ?? 0));
    const entries = steps.map((step, index) => ({
      runId,
      claimId: claimed.claimId,
      name: step,
      seq: highest + index + 1,
      inboxSeq: 0,
      change: { op: "run", attempt: 0, output: '"before"', error: null, tookMs: 1 } as const,
    }));
    if (entries.length > 0) {
      expect(await store.record(entries, { patient: true })).toEqual(
        entries.map(() => ({ kind: "recorded", inboxSeq: null })),
      );
    }
    await dieWith(runId, name);
  };

  const make = (name: string, seen: unknown[] = []) =>
    workflow({
      name,
      queue: "default",
      run: async ({ step }) => {
        const results: unknown[] = [];
        for (const index of [0, 1, 2]) {
          results.push(
            await step.run(`step-${index}`, ({ attempt }) => {
              seen.push([index, attempt]);
              return "after";
            }),
          );
        }
        return results;
      },
    });

  it("the worker after one that dies goes on behind what was recorded; a crash uses no attempt of a step", async () => {
    const seen: unknown[] = [];
    const crashing = make("crashing", seen);
    const { runId } = await pawl.start(crashing);
    await crash(runId, "crashing", ["step-0", "step-1"]);
    expect(await rowOf(runId)).toMatchObject({ status: "runnable", attempt: 1, crashes: 1, crash_seq: 2 });
    await serve([crashing]);
    expect(await pawl.result(runId)).toEqual(["before", "before", "after"]);
    expect(seen).toEqual([[2, 0]]);
  });

  it("ten crashes without progress are survived, the eleventh fails the run: TooManyCrashes", async () => {
    const seen: unknown[] = [];
    const fragile = make("fragile", seen);
    const lucky = await pawl.start(fragile);
    for (let n = 0; n < 10; n++) await crash(lucky.runId, "fragile");
    expect(await rowOf(lucky.runId)).toMatchObject({ crashes: 10 });
    await sql("update runs set eligible_at = clock_timestamp() + interval '1h' where id = $1", [lucky.runId]);
    const unlucky = await pawl.start(fragile);
    for (let n = 0; n < 11; n++) await crash(unlucky.runId, "fragile");
    await sql("update runs set eligible_at = clock_timestamp()");
    await serve([fragile]);
    expect(await pawl.result(lucky.runId)).toEqual(["after", "after", "after"]);
    await expect(pawl.result(unlucky.runId)).rejects.toMatchObject({ error: { code: "TooManyCrashes" } });
    expect(seen).toHaveLength(3);
  });

  it("a recorded step is progress: the count begins anew", async () => {
    const progressing = make("progressing");
    const { runId } = await pawl.start(progressing);
    for (let n = 0; n < 8; n++) await crash(runId, "progressing");
    expect(await rowOf(runId)).toMatchObject({ crashes: 8, crash_seq: 0 });
    await crash(runId, "progressing", ["step-0"]);
    expect(await rowOf(runId)).toMatchObject({ crashes: 1, crash_seq: 1 });
    for (let n = 0; n < 9; n++) await crash(runId, "progressing");
    expect(await rowOf(runId)).toMatchObject({ crashes: 10, crash_seq: 1 });
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
    await serve([progressing]);
    expect(await pawl.result(runId)).toEqual(["before", "after", "after"]);
  });

  it("maxCrashes is an option of the definition", async () => {
    const never = workflow({ name: "never-again", maxCrashes: 0, run: async () => "lucky" });
    const { runId } = await pawl.start(never);
    await crash(runId, "never-again");
    await serve([never]);
    await expect(pawl.result(runId)).rejects.toMatchObject({ error: { code: "TooManyCrashes" } });
  });
});
