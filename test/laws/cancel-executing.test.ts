import { child, job, machine, RunCancelled, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { gate } from "../support/gate.js";
import { claimOne, register } from "../support/store.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const engine = testEngine(database);
const { pawl } = engine;
// No lease is to lapse here, however slow the machine.
const serve: typeof engine.serve = (definitions, options) =>
  engine.serve(definitions, { lease: "1m", ...options });
const { sql, store } = database;

/** Cancels as another process would: nobody here is told. */
const cancelElsewhere = (runId: string) => store.cancel(runId, { reason: "from afar", cascade: false });

const rowOf = async (runId: string) => {
  const [row] = await sql<{ status: string; locked_by: string | null; attempt: number; turn: number }>(
    "select status, locked_by, attempt, turn::int, state, result from runs where id = $1",
    [runId],
  );
  return row!;
};
const letGo = (runId: string) =>
  until("its worker has let it go", async () => (await rowOf(runId)).locked_by === null);

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });

describe("a running step", () => {
  it("sees its signal aborted when cancel resolves, with the reason; who waits for the result has heard", async () => {
    const open = gate();
    const signals: AbortSignal[] = [];
    const long = job({
      name: "long",
      run: (ctx) => {
        signals.push(ctx.signal);
        return open.pass();
      },
    });
    const steps = machine({
      name: "long-steps",
      steps: {
        start: async (ctx) => {
          signals.push(ctx.signal);
          await open.pass();
          return ctx.done();
        },
      },
    });
    await serve([long, steps], { drainTimeout: "1h" });
    for (const { runId } of [await pawl.start(long), await pawl.start(steps, {})]) {
      const heard: unknown[] = [];
      pawl.result(runId).catch((error: unknown) => heard.push(error));
      const signal = await until("it runs", () => signals.shift());
      expect(signal.aborted).toBe(false);
      await pawl.runs.cancel(runId, { reason: "enough" });
      expect(signal.reason).toBeInstanceOf(RunCancelled);
      expect(signal.reason).toMatchObject({ runId, reason: "enough" });
      await new Promise((resolve) => setImmediate(resolve));
      expect(heard).toMatchObject([{ code: "RunCancelled", reason: "enough" }]);
      // The record is final while the code still runs.
      expect(await rowOf(runId)).toMatchObject({ status: "cancelled", locked_by: expect.any(String) });
    }
    open.open();
  });

  it("sees it aborted by a heartbeat when the cancel came from another process", async () => {
    let seen: unknown;
    const remote = job({
      name: "remote",
      run: async (ctx) => {
        await aborted(ctx.signal);
        seen = ctx.signal.reason;
        return "too late";
      },
    });
    await serve([remote]);
    const { runId } = await pawl.start(remote);
    await cancelElsewhere(runId);
    await until("it has seen it", () => seen !== undefined);
    expect(seen).toBeInstanceOf(RunCancelled);
    await letGo(runId);
    expect(await rowOf(runId)).toMatchObject({ status: "cancelled", result: null, attempt: 0 });
    await expect(pawl.result(runId)).rejects.toMatchObject({ reason: "from afar" });
  });

  for (const [where, cancel] of [
    ["in its own process", (runId: string) => pawl.runs.cancel(runId)],
    ["elsewhere", cancelElsewhere],
  ] as const) {
    it(`changes nothing by its outcome when it was cancelled ${where}`, async () => {
      const outcomes = ["next", "retry", "await", "spawn", "done", "stop", "throw"] as const;
      const entered: string[] = [];
      const doomed = machine({
        name: `doomed-${where.split(" ").at(-1)}`,
        state: type<{ by: (typeof outcomes)[number]; n: number }>(),
        steps: {
          start: async (ctx) => {
            await cancel(ctx.runId);
            const state = { ...ctx.state, n: 2 };
            switch (ctx.state.by) {
              case "next":
                return ctx.next("second", state);
              case "retry":
                return ctx.retry(state, 0);
              case "await":
                return ctx.awaitSignal("go", "second", state, { timeout: 0 });
              case "spawn":
                return ctx.spawn("second", [child("nobody", {})], state);
              case "done":
                return ctx.done("result");
              case "stop":
                return ctx.stop("reason");
              case "throw":
                throw new Error("because of the abort");
            }
          },
          second: (ctx) => {
            entered.push(ctx.state.by);
            return ctx.done("second");
          },
        },
      });
      const worker = await serve([doomed]);
      const started = await Promise.all(outcomes.map((by) => pawl.start(doomed, { by, n: 1 })));
      for (const { runId } of started) {
        await expect(pawl.result(runId)).rejects.toMatchObject({ code: "RunCancelled" });
      }
      // All code has returned and every outcome is answered.
      await worker.stop();
      for (const { runId } of started) {
        const row = { status: "cancelled", turn: 0, attempt: 0, state: null, result: null };
        expect(await rowOf(runId)).toMatchObject(row);
        expect(await sql("select from runs where parent_id = $1", [runId])).toEqual([]);
        const { error } = await pawl.runs.get(runId);
        expect(error?.message ?? null).toBe(where === "elsewhere" ? "from afar" : null);
      }
      expect(entered).toEqual([]);
    });
  }

  it("lets its run go when its code has returned, also if its worker has not heard of the cancel", async () => {
    const unaware = job({
      name: "unaware",
      run: async (ctx) => {
        await cancelElsewhere(ctx.runId);
        return "dropped";
      },
    });
    await serve([unaware]);
    const { runId } = await pawl.start(unaware);
    await until("it is cancelled", async () => (await rowOf(runId)).status === "cancelled");
    await until("it is let go", async () => (await rowOf(runId)).locked_by === null, 5_000);
    expect(await rowOf(runId)).toMatchObject({ status: "cancelled", result: null });
  });

  it("of a job is not tried again because of what it threw when aborted", async () => {
    let tries = 0;
    const touchy = job({
      name: "touchy",
      backoff: () => 0,
      run: async (ctx) => {
        tries++;
        await aborted(ctx.signal);
        ctx.signal.throwIfAborted();
      },
    });
    await serve([touchy]);
    const { runId } = await pawl.start(touchy);
    await until("it runs", () => tries === 1);
    await pawl.runs.cancel(runId, { reason: "stop it" });
    await letGo(runId);
    expect(await pawl.runs.get(runId)).toMatchObject({
      phase: "cancelled",
      attempt: 0,
      error: { message: "stop it" },
    });
    expect(tries).toBe(1);
  });
});

describe("code that never returns", () => {
  const stuck = (name: string, open: ReturnType<typeof gate>, begun: string[]) =>
    job({
      name,
      queue: name,
      run: async (_ctx, what: string) => {
        begun.push(what);
        if (what.startsWith("stuck")) await open.pass();
        return what;
      },
    });

  for (const [where, cancel] of [
    ["here", (runId: string) => pawl.runs.cancel(runId)],
    ["elsewhere", cancelElsewhere],
  ] as const) {
    it(`of a run that was cancelled ${where} frees its slot after drainTimeout, and is dropped when it returns after all`, async () => {
      const open = gate();
      const begun: string[] = [];
      const name = `endless-${where}`;
      const endless = stuck(name, open, begun);
      const worker = await serve([endless], { queues: { [name]: 1 }, drainTimeout: 30 });
      let released = 0;
      worker.on("run.released", () => released++);
      // One slot, and each of them would keep it.
      const runs = [];
      for (const what of ["stuck 1", "stuck 2"]) {
        const { runId } = await pawl.start(endless, what);
        runs.push(runId);
        await until("it runs", () => begun.includes(what));
        await cancel(runId);
        await letGo(runId);
      }
      expect(await pawl.result((await pawl.start(endless, "next")).runId)).toBe("next");
      await until("all are told of", () => released === 3);
      open.open();
      await worker.stop();
      expect(released).toBe(3);
      for (const runId of runs) {
        expect(await rowOf(runId)).toMatchObject({ status: "cancelled", result: null, locked_by: null });
      }
    });
  }

  it("of a run whose claim was lost frees its slot after drainTimeout too", async () => {
    const open = gate();
    const begun: string[] = [];
    const lost = stuck("claim-lost", open, begun);
    const worker = await serve([lost], { queues: { "claim-lost": 1 }, drainTimeout: 30, heartbeat: "50ms" });
    const { runId } = await pawl.start(lost, "stuck");
    await until("it runs", () => begun.length === 1);
    await sql("update workers set seen_at = seen_at - interval '1 hour' where serves @> '{claim-lost@1}'");
    expect(await pawl.result((await pawl.start(lost, "next")).runId)).toBe("next");
    expect(begun[0]).toBe("stuck");
    await pawl.runs.cancel(runId);
    open.open();
    await worker.stop();
  });
});

describe("a claimed run that has not begun", () => {
  for (const [where, cancel] of [
    ["in this process", (runId: string) => pawl.runs.cancel(runId)],
    ["elsewhere", cancelElsewhere],
  ] as const) {
    it(`never does when it is cancelled ${where}, and is let go while others still run`, async () => {
      const queue = `ahead-${where.split(" ").at(-1)}`;
      const open = gate();
      const begun: number[] = [];
      const fetched = job({
        name: queue,
        queue,
        run: (_ctx, n: number) => {
          begun.push(n);
          return open.pass();
        },
      });
      await serve([fetched], { queues: { [queue]: 1 }, prefetch: 3 });
      const runs = [];
      for (let n = 0; n < 4; n++) runs.push(await pawl.start(fetched, n));
      await until("all are claimed", async () => {
        const rows = await sql("select from runs where queue = $1 and locked_by is not null", [queue]);
        return rows.length === 4;
      });
      await cancel(runs[2]!.runId);
      await letGo(runs[2]!.runId);
      expect(begun).toEqual([0]);
      open.open();
      for (const n of [0, 1, 3]) await pawl.result(runs[n]!.runId);
      expect(begun).toEqual([0, 1, 3]);
    });
  }
});

describe("the partition key of a cancelled run", () => {
  const keyed = (name: string, events: string[], open: ReturnType<typeof gate>) =>
    job({
      name,
      run: async (_ctx, what: string) => {
        events.push(`${what} begins`);
        if (what === "stubborn") await open.pass();
        events.push(`${what} returns`);
      },
    });

  it("stays with it until its code has returned", async () => {
    const events: string[] = [];
    const open = gate();
    const patient = keyed("patient", events, open);
    await serve([patient], { drainTimeout: "1h" });
    const stubborn = await pawl.start(patient, "stubborn", { partitionKey: "kept" });
    await until("it runs", open.entered);
    await pawl.runs.cancel(stubborn.runId);
    const next = await pawl.start(patient, "next", { partitionKey: "kept" });
    await until("the next is blocked", async () => {
      return (await sql("select from runs where id = $1 and hold = 1", [next.runId])).length === 1;
    });
    expect(await rowOf(stubborn.runId)).toMatchObject({ status: "cancelled", locked_by: expect.any(String) });
    await pawl.result((await pawl.start(patient, "other", { partitionKey: "another" })).runId);
    open.open();
    await pawl.result(next.runId);
    expect(events.filter((event) => !event.startsWith("other"))).toEqual([
      "stubborn begins",
      "stubborn returns",
      "next begins",
      "next returns",
    ]);
    expect((await rowOf(stubborn.runId)).locked_by).toBe(null);
  });

  it("goes to the next when drainTimeout has passed, though its code still runs", async () => {
    const events: string[] = [];
    const open = gate();
    const hasty = keyed("hasty", events, open);
    await serve([hasty], { drainTimeout: 30 });
    const stubborn = await pawl.start(hasty, "stubborn", { partitionKey: "drained" });
    await until("it runs", open.entered);
    const next = await pawl.start(hasty, "next", { partitionKey: "drained" });
    await pawl.runs.cancel(stubborn.runId);
    await pawl.result(next.runId);
    expect(events).toEqual(["stubborn begins", "next begins", "next returns"]);
    open.open();
    await until("it has returned", () => events.length === 4);
    expect(await rowOf(stubborn.runId)).toMatchObject({ status: "cancelled", result: null });
  });

  it("is freed by the reaper when the worker has died; the run stays cancelled", async () => {
    await register(database, "mortal");
    const options = { partitionKey: "orphaned", queue: "graves" };
    const { runId } = await pawl.start(job({ name: "counter", run: () => 0 }), null, options);
    const look = { queue: "graves", workerId: "mortal" };
    expect(await claimOne(database, look)).toMatchObject({ runId });
    const next = await pawl.start(job({ name: "counter", run: () => 0 }), null, options);
    await cancelElsewhere(runId);
    await store.reap(100);
    expect(await rowOf(runId)).toMatchObject({ status: "cancelled", locked_by: "mortal" });
    await sql("delete from workers where id = 'mortal'");
    await until("it is reaped", async () => {
      await store.reap(100);
      return (await rowOf(runId)).locked_by === null;
    });
    expect(await rowOf(runId)).toMatchObject({ status: "cancelled", attempt: 0 });
    await register(database, "heir");
    expect(await claimOne(database, { ...look, workerId: "heir" })).toMatchObject({ runId: next.runId });
  });
});
