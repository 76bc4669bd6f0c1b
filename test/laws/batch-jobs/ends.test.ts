import { job, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

/** Longer than a test may take: only a full batch is called. */
const never = "1m";
const numbered = type<{ n: number }>();
const numbers = (count: number): { input: { n: number } }[] =>
  Array.from({ length: count }, (_, n) => ({ input: { n } }));
const idsOf = (started: readonly { runId: string }[]): string[] => started.map(({ runId }) => runId);

/** Waits until a worker has claimed this many runs of a queue. */
async function claimed(queue: string, count: number): Promise<void> {
  await until(`${count} runs of ${queue} are claimed`, async () => {
    const [row] = await sql(
      "select count(*)::int as n from runs where queue = $1 and locked_by is not null",
      [queue],
    );
    return row?.n === count;
  });
}

describe("a cancelled run", () => {
  it("leaves the batch that is being collected, and frees its claim", async () => {
    const calls: number[][] = [];
    const early = job({
      name: "early",
      queue: "early",
      input: numbered,
      batch: { size: 2, wait: never },
      run: (_ctx, items) => void calls.push(items.map(({ input }) => input.n)),
    });
    await serve([early]);
    const { runId: first } = await pawl.start(early, { n: 0 });
    await claimed("early", 1);
    await pawl.runs.cancel(first);
    await until("its claim is free", async () => {
      const [row] = await sql("select locked_by from runs where id = $1", [first]);
      return row?.locked_by === null;
    });
    const others = idsOf(await pawl.startMany(early, [{ input: { n: 1 } }, { input: { n: 2 } }]));
    for (const runId of others) await pawl.result(runId);
    expect(calls).toEqual([[1, 2]]);
  });

  it("sees the signal of its item during the call, and only its result is dropped", async () => {
    const going = gate();
    const aborted: number[] = [];
    let isAllAborted = false;
    const late = job({
      name: "late",
      queue: "late",
      input: numbered,
      batch: { size: 3, wait: never },
      run: async (ctx, items) => {
        for (const { input, signal } of items) {
          signal.addEventListener("abort", () => aborted.push(input.n));
        }
        ctx.signal.addEventListener("abort", () => (isAllAborted = true));
        await going.pass();
        return items.map(({ input }) => input.n);
      },
    });
    await serve([late]);
    const runIds = idsOf(await pawl.startMany(late, numbers(3)));
    await until("the call runs", going.entered);
    await pawl.runs.cancel(runIds[1]!);
    await until("the item knows", () => aborted.length > 0);
    going.open();
    expect(await pawl.result(runIds[0]!)).toBe(0);
    expect(await pawl.result(runIds[2]!)).toBe(2);
    expect(await pawl.runs.get(runIds[1]!)).toMatchObject({ status: "cancelled", output: null });
    expect({ aborted, isAllAborted }).toEqual({ aborted: [1], isAllAborted: false });
  });

  it("aborts the signal of the call if all runs of the call were cancelled", async () => {
    let isBegun = false;
    let isAborted = false;
    const all = job({
      name: "all",
      queue: "all",
      batch: { size: 2, wait: never },
      run: (ctx) =>
        new Promise<void>((resolve) => {
          isBegun = true;
          ctx.signal.addEventListener("abort", () => {
            isAborted = true;
            resolve();
          });
        }),
    });
    await serve([all]);
    const runIds = idsOf(await pawl.startMany(all, [{ input: 1 }, { input: 2 }]));
    await until("the call runs", () => isBegun);
    for (const runId of runIds) await pawl.runs.cancel(runId);
    await until("the call is aborted", () => isAborted);
  });

  it("does not keep a slot if the code of its call never returns", async () => {
    let calls = 0;
    const stuck = job({
      name: "stuck",
      queue: "stuck",
      batch: { size: 2, wait: 0 },
      run: () => {
        calls++;
        return calls === 1 ? new Promise<string>(() => {}) : "done";
      },
    });
    await serve([stuck], { queues: { stuck: 1 }, drainTimeout: "50ms" });
    const { runId: first } = await pawl.start(stuck, 1);
    await until("the call runs", () => calls === 1);
    await pawl.runs.cancel(first);
    const { runId: second } = await pawl.start(stuck, 2);
    expect(await pawl.result(second)).toBe("done");
  });

  it("never appears in a later call", async () => {
    const going = gate();
    const calls: [number, number][] = [];
    const retried = job({
      name: "retried",
      queue: "retried",
      input: numbered,
      batch: { size: 2, wait: "50ms" },
      backoff: () => 0,
      run: async (_ctx, items) => {
        for (const { input, attempt } of items) calls.push([input.n, attempt]);
        await going.pass();
        if (items.some(({ attempt }) => attempt === 0)) throw new Error("again");
      },
    });
    await serve([retried]);
    const runIds = idsOf(await pawl.startMany(retried, numbers(2)));
    await until("the call runs", () => calls.length === 2);
    await pawl.runs.cancel(runIds[0]!);
    going.open();
    await pawl.result(runIds[1]!);
    expect(calls).toEqual([
      [0, 0],
      [1, 0],
      [1, 1],
    ]);
  });
});

describe("a worker that stops", () => {
  it("releases the runs of a batch that is being collected, with their attempt unchanged", async () => {
    const collecting = job({
      name: "collecting",
      queue: "collecting",
      batch: { size: 3, wait: never },
      run: () => null,
    });
    const worker = await serve([collecting], { drainTimeout: "1m" });
    await pawl.startMany(collecting, [{ input: 1 }, { input: 2 }]);
    await claimed("collecting", 2);
    await worker.stop();
    const rows = await sql("select status, attempt, crashes, locked_by from runs where queue = 'collecting'");
    const released = { status: "runnable", attempt: 0, crashes: 0, locked_by: null };
    expect(rows).toEqual([released, released]);
  });

  it("waits for a call that runs, and commits its outcomes", async () => {
    const going = gate();
    const finishing = job({
      name: "finishing",
      queue: "finishing",
      batch: { size: 2, wait: never },
      run: async () => (await going.pass(), "finished"),
    });
    const worker = await serve([finishing], { drainTimeout: "1m" });
    const runIds = idsOf(await pawl.startMany(finishing, [{ input: 1 }, { input: 2 }]));
    await until("the call runs", going.entered);
    const stopping = worker.stop();
    going.open();
    await stopping;
    for (const runId of runIds) expect((await pawl.runs.get(runId)).output).toBe("finished");
  });

  it("aborts a call that does not finish, and releases its runs", async () => {
    let isAborted = false;
    let isBegun = false;
    const stubborn = job({
      name: "stubborn",
      queue: "stubborn",
      batch: { size: 2, wait: never },
      run: (ctx) => {
        isBegun = true;
        ctx.signal.addEventListener("abort", () => (isAborted = true));
        return new Promise<void>(() => {});
      },
    });
    const worker = await serve([stubborn], { drainTimeout: 0 });
    await pawl.startMany(stubborn, [{ input: 1 }, { input: 2 }]);
    await until("the call runs", () => isBegun);
    await worker.stop();
    expect(isAborted).toBe(true);
    const rows = await sql("select status, attempt, locked_by from runs where queue = 'stubborn'");
    const released = { status: "runnable", attempt: 0, locked_by: null };
    expect(rows).toEqual([released, released]);
  });
});

describe("a call of a batch job", () => {
  it("records no result of a run whose claim was lost, and those of the others", async () => {
    const going = gate();
    const stale = job({
      name: "stale",
      queue: "stale",
      batch: { size: 2, wait: never },
      run: async () => (await going.pass(), "done"),
    });
    const worker = await serve([stale], { heartbeat: "2s" });
    let staleCommits = 0;
    worker.on("commit.stale", () => staleCommits++);
    const runIds = idsOf(await pawl.startMany(stale, [{ input: 1 }, { input: 2 }]));
    await until("the call runs", going.entered);
    await sql("update runs set claim_id = claim_id + 1 where id = $1", [runIds[0]]);
    going.open();
    expect(await pawl.result(runIds[1]!)).toBe("done");
    const [row] = await sql("select status from runs where id = $1", [runIds[0]]);
    expect(row).toEqual({ status: "executing" });
    await until("the worker knows", () => staleCommits === 1);
  });

  it("that takes longer than maxStepDuration fails all of its runs", async () => {
    const long = job({
      name: "long",
      queue: "long",
      batch: { size: 2, wait: never },
      maxAttempts: 1,
      run: () => new Promise<void>(() => {}),
    });
    await serve([long], { maxStepDuration: "20ms" });
    for (const { runId } of await pawl.startMany(long, [{ input: 1 }, { input: 2 }])) {
      await expect(pawl.result(runId)).rejects.toMatchObject({ error: { code: "StepTimeout" } });
    }
  });

  it("has no transaction, and says so", async () => {
    const transacting = job({
      name: "transacting",
      queue: "transacting",
      batch: { size: 1 },
      maxAttempts: 1,
      run: (ctx) => String(Reflect.get(ctx, "transaction")),
    });
    await serve([transacting]);
    const { runId } = await pawl.start(transacting, null);
    await expect(pawl.result(runId)).rejects.toMatchObject({ error: { code: "NotSupported" } });
  });

  it("is an event, and a metric counts its size", async () => {
    const observed = job({
      name: "observed",
      queue: "observed",
      batch: { size: 3, wait: never },
      run: () => null,
    });
    const worker = await serve([observed]);
    const events: { name: string; size: number }[] = [];
    worker.on("batch", ({ name, size }) => events.push({ name, size }));
    for (const { runId } of await pawl.startMany(observed, [{ input: 1 }, { input: 2 }, { input: 3 }])) {
      await pawl.result(runId);
    }
    expect(events).toEqual([{ name: "observed", size: 3 }]);
    expect(await worker.metrics()).toContain('pawl_batch_size_sum{workflow="observed"} 3');
  });
});
