import { child, InvalidOption, job, machine, RunCancelled, type } from "pawl";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { gate } from "../support/gate.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { sql, url, store } = database;
const { pawl, serve } = testEngine(database);
/** Neither polls nor repairs: what goes on is told by the call that made it possible. */
const rarely = { pollInterval: "1h", maxPollInterval: "1h", reapInterval: "1h" } as const;

// What steps write down: when they began and ended, by the clock of the database.
await sql("create table public.spans (run text, key text, begun timestamptz, ended timestamptz)");
const pool = new pg.Pool({ connectionString: url, max: 8 });
afterAll(() => pool.end());
const span = async (run: string, key: string): Promise<void> => {
  const { rows } = await pool.query<{ at: string }>("select clock_timestamp()::text as at");
  await pool.query("insert into public.spans values ($1, $2, $3, clock_timestamp())", [
    run,
    key,
    rows[0]!.at,
  ]);
};
/** Pairs of steps of different runs at the same time: of one key, or of different ones. */
const overlaps = async (prefix: string, keys: "one key" | "different keys"): Promise<number> => {
  const [row] = await sql<{ n: string }>(
    `select count(*) as n from public.spans a join public.spans b
       on a.run < b.run and a.begun < b.ended and b.begun < a.ended and (a.key = b.key) = $2
     where starts_with(a.key, $1) and starts_with(b.key, $1)`,
    [prefix, keys === "one key"],
  );
  return Number(row!.n);
};
const waitUntilBlocked = (runId: string): Promise<unknown> =>
  until(`run ${runId} is blocked`, async () => {
    const [row] = await sql<{ hold: number }>("select hold from runs where id = $1", [runId]);
    return row?.hold === 1;
  });

describe("runs that share a key", () => {
  it("do not keep others waiting however long their line is, also where the worker looks for more only when several slots are free", async () => {
    const order: string[] = [];
    const held = gate();
    const hot = job({
      name: "hot",
      queue: "hot",
      run: async (_ctx, label: string) => {
        order.push(label);
        if (order.length === 20) await held.pass();
      },
    });
    const given = { input: "hot", partitionKey: "hot" };
    await pawl.startMany(
      hot,
      Array.from({ length: 1_500 }, () => given),
    );
    await serve([hot], { queues: { hot: 2 }, minDemand: 2 });
    await until("the line moves", async () => held.entered() === 1);
    // Nobody in this process hears of it.
    await sql("select start('hot', '\"other\"')");
    held.open();
    await until("all have ended", async () => order.length === 1_501);
    expect(order.indexOf("other")).toBeLessThan(1_400);
  });

  it("let a run of higher priority that comes meanwhile go first, however many wait and however quick they are", async () => {
    const order: string[] = [];
    const held = gate();
    const quick = job({
      name: "quick",
      queue: "quick",
      run: async (_ctx, label: string) => {
        order.push(label);
        if (label === "200") await held.pass();
      },
    });
    const given = (label: number) => ({ input: String(label), partitionKey: "quick" });
    await pawl.startMany(
      quick,
      Array.from({ length: 300 }, (_, index) => given(index)),
    );
    await serve([quick]);
    await until("the first 200 have had their turn", async () => order.length === 201);
    await pawl.start(quick, "urgent", { partitionKey: "quick", priority: -1 });
    held.open();
    await until("all have ended", async () => order.length === 301);
    // It may have come within the 10 ms for which the line is known, and then at most a few more runs go first.
    const place = order.indexOf("urgent");
    expect(place).toBeGreaterThanOrEqual(201);
    expect(place).toBeLessThan(280);
    expect(order.toSpliced(place, 1)).toEqual(Array.from({ length: 300 }, (_, index) => String(index)));
  });

  it("never execute at the same time, on several workers, across next, retry, waits and moves", async () => {
    const wanders = machine({
      name: "wanders",
      queue: "wanders",
      state: type<{ key: string }>(),
      steps: {
        start: async (ctx) => {
          await span(ctx.runId, ctx.state.key);
          return ctx.attempt === 0 ? ctx.retry(ctx.state, 1) : ctx.next("kept", ctx.state);
        },
        kept: async (ctx) => {
          await span(ctx.runId, ctx.state.key);
          return ctx.awaitSignal("go", "woken", ctx.state, { timeout: 5 });
        },
        woken: async (ctx) => {
          await span(ctx.runId, ctx.state.key);
          return ctx.next("moved", { key: "wanders-all" }, { partitionKey: "wanders-all" });
        },
        moved: async (ctx) => {
          await span(ctx.runId, "wanders-all");
          return ctx.done(null);
        },
      },
    });
    for (let n = 0; n < 3; n++) await serve([wanders], { queues: { wanders: 6 } });
    const items = Array.from({ length: 60 }, (_, n) => `wanders-${n % 5}`).map((key) => ({
      input: { key },
      partitionKey: key,
    }));
    const started = await pawl.startMany(wanders, items);
    for (const { runId } of started) await pawl.result(runId);
    expect(await sql("select from public.spans where starts_with(key, 'wanders')")).toHaveLength(60 * 5);
    expect(await overlaps("wanders", "one key")).toBe(0);
    expect(await overlaps("wanders", "different keys")).toBeGreaterThan(0);
  });

  it("execute in the order of priority, due time and start, whatever queue and definition they belong to", async () => {
    const order: string[] = [];
    const note = (_ctx: unknown, what: string): void => void order.push(what);
    const one = job({ name: "order-one", queue: "order-one", run: note });
    const two = job({ name: "order-two", queue: "order-two", run: note });
    const partitionKey = "order";
    const past = new Date(Date.now() - 10_000); // less than the minute after which a run that nobody serves leaves the line
    const started = [
      await pawl.start(one, "third", { partitionKey }),
      await pawl.start(two, "fourth", { partitionKey }),
      await pawl.start(one, "last", { partitionKey, priority: 1, at: past }),
      await pawl.start(one, "second", { partitionKey, at: past }),
      await pawl.start(two, "first", { partitionKey, priority: -1 }),
    ];
    await serve([two]);
    await serve([one]);
    for (const { runId } of started) await pawl.result(runId);
    expect(order).toEqual(["first", "second", "third", "fourth", "last"]);
  });

  it("leave the slots of the worker to runs of other keys", async () => {
    const blocked = gate();
    const waits = job({
      name: "slots",
      queue: "slots",
      run: (_ctx, wait: boolean) => (wait ? blocked.pass() : undefined),
    });
    await serve([waits], { queues: { slots: 2 } });
    const holder = await pawl.start(waits, true, { partitionKey: "slots-a" });
    await until("it executes", blocked.entered);
    const behind = await pawl.startMany(waits, Array(20).fill({ input: false, partitionKey: "slots-a" }));
    for (const key of ["slots-b", "slots-c"]) {
      await pawl.result((await pawl.start(waits, false, { partitionKey: key })).runId);
    }
    await waitUntilBlocked(behind[19]!.runId);
    expect((await pawl.why(behind[19]!.runId)).text).toContain(holder.runId);
    blocked.open();
    for (const { runId } of [holder, ...behind]) await pawl.result(runId);
  });

  it("begin one after the other without any poll or repair", async () => {
    const quick = job({ name: "line", queue: "line", run: () => null });
    await serve([quick], { ...rarely, queues: { line: 3 } });
    const items = Array.from({ length: 60 }, (_, n) => ({
      input: {} as never,
      partitionKey: `line-${n % 4}`,
    }));
    const started = await pawl.startMany(quick, items);
    for (const { runId } of started) expect(await pawl.result(runId)).toBe(null);
  });

  it("may be parent and children: a parent that waits does not hold the key", async () => {
    const leaf = job({ name: "key-leaf", queue: "family", run: () => 1 });
    const parent = machine({
      name: "key-parent",
      queue: "family",
      steps: {
        start: (ctx) =>
          ctx.spawn(
            "gathered",
            [1, 2, 3].map(() => child(leaf, undefined as never, { partitionKey: "family" })),
            {},
          ),
        gathered: (ctx) => ctx.done(ctx.children.length),
      },
    });
    await serve([leaf, parent], rarely);
    const { runId } = await pawl.start(parent, {}, { partitionKey: "family" });
    expect(await pawl.result(runId)).toBe(3);
  });
});

describe("without any poll or repair the next of a key begins", () => {
  const patient = machine({
    name: "patient",
    queue: "patient",
    state: type<{ what?: string }>(),
    steps: {
      start: (ctx) => {
        const { what } = ctx.state;
        if (what === "waits") return ctx.awaitSignal("go", "woken", {});
        return what === "retries" && ctx.attempt === 0 ? ctx.retry(ctx.state, "1h") : ctx.done("ended");
      },
      woken: (ctx) => ctx.done("woken"),
    },
  });

  it("when the one before it waits for a signal, or is put off by a retry", async () => {
    await serve([patient], rarely);
    const options = { partitionKey: "patient" };
    const waiting = await pawl.start(patient, { what: "waits" }, options);
    const retrying = await pawl.start(patient, { what: "retries" }, options);
    const last = await pawl.start(patient, {}, options);
    expect(await pawl.result(last.runId)).toBe("ended");
    expect((await pawl.runs.get(retrying.runId)).phase).toBe("runnable");
    await pawl.signal(waiting.runId, "go");
    expect(await pawl.result(waiting.runId)).toBe("woken");
  });

  it("when the one before it is cancelled, but not before its code has returned", async () => {
    const blocked = gate();
    const stubborn = job({
      name: "stubborn",
      queue: "stubborn",
      run: (_ctx, wait: boolean) => (wait ? blocked.pass() : undefined),
    });
    await serve([stubborn], { ...rarely, drainTimeout: "1m" });
    const options = { partitionKey: "stubborn" };
    const first = await pawl.start(stubborn, true, options);
    await until("it executes", blocked.entered);
    const second = await pawl.start(stubborn, false, options);
    await waitUntilBlocked(second.runId);
    await pawl.runs.cancel(first.runId);
    await expect(pawl.result(first.runId)).rejects.toThrow(RunCancelled);
    await store.repairKeys(null, 1_000);
    await waitUntilBlocked(second.runId);
    blocked.open();
    expect(await pawl.result(second.runId)).toBe(null);
  });
});

describe("partitionKey", () => {
  it("of 513 bytes is refused before anything is written", async () => {
    const never = job({ name: "never", queue: "never", run: () => null });
    for (const partitionKey of ["k".repeat(513), "ä".repeat(257), "", 7 as never, "\0"]) {
      await expect(pawl.start(never, undefined as never, { partitionKey })).rejects.toThrow(InvalidOption);
    }
    expect(await sql("select from runs where name = 'never'")).toEqual([]);
  });

  it("in next is checked as an error of the step, which handle gets; 512 bytes and null are fine", async () => {
    const long = machine({
      name: "long-key",
      queue: "long-key",
      steps: {
        start: (ctx) => ctx.next("last", {}, { partitionKey: "k".repeat(513) }),
        last: (ctx) => ctx.next("free", {}, { partitionKey: null }),
        free: (ctx) => ctx.done("free"),
      },
      handle: (error, ctx) =>
        error instanceof Error && error.message.includes("at most 512 bytes")
          ? ctx.next("last", {}, { partitionKey: "k".repeat(512) })
          : ctx.stop(error),
    });
    await serve([long], rarely);
    const { runId } = await pawl.start(long, {}, { partitionKey: "short" });
    expect(await pawl.result(runId)).toBe("free");
    expect(await sql("select partition_key from runs where id = $1", [runId])).toEqual([
      { partition_key: null },
    ]);
  });
});
