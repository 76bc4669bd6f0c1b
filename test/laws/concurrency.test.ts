import { child, InvalidOption, job, machine, type, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { gate } from "../support/gate.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { sql } = database;
const { pawl, serve } = testEngine(database);
/** Neither polls nor repairs: each run goes on because the call that made it possible says so. */
const rarely = { pollInterval: "1h", maxPollInterval: "1h", reapInterval: "1h" } as const;

/** Notes every moment at which a key is held more often than its limit allows, within the writing transaction. */
await sql("create table public.excess (concurrency text, held int)");
await sql(`create function public.note_excess() returns trigger language plpgsql as $$ begin
  insert into public.excess select new.concurrency, count(*) from pawl.runs r
    where r.concurrency = new.concurrency and r.locked_by is not null
    having count(*) > (select l.concurrent from pawl.limits l where l.name = split_part(new.concurrency, ':', 1));
  return null; end $$`);
await sql(`create trigger note_excess after update on runs for each row
  when (new.locked_by is not null and old.locked_by is null and new.concurrency is not null)
  execute function public.note_excess()`);
const excess = (): Promise<unknown[]> => sql("select * from public.excess");

/** Counts how many executions are under way, by key. */
class Meter {
  readonly now = new Map<string, number>();
  readonly most = new Map<string, number>();

  async during<T>(key: string, act: () => Promise<T>): Promise<T> {
    this.now.set(key, (this.now.get(key) ?? 0) + 1);
    this.most.set(key, Math.max(this.most.get(key) ?? 0, this.now.get(key)!));
    try {
      return await act();
    } finally {
      this.now.set(key, this.now.get(key)! - 1);
    }
  }
}
const turns = async (count: number): Promise<void> => {
  for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve));
};

describe("a concurrency limit", () => {
  it("lets at most that many runs execute at once, on several workers, and all of them in the end", async () => {
    await pawl.limits.set("three", { concurrent: 3 });
    const meter = new Meter();
    const work = job({ name: "three", queue: "three", run: () => meter.during("", () => turns(20)) });
    for (let n = 0; n < 3; n++) await serve([work], { queues: { three: 10 } });
    const items = Array.from({ length: 60 }, () => ({ input: undefined as never, concurrency: "three" }));
    const started = await pawl.startMany(work, items);
    for (const { runId } of started) await pawl.result(runId);
    expect(meter.most.get("")).toBe(3);
    expect(await excess()).toEqual([]);
  });

  it("has slots of its own for every key, and no key waits for another", async () => {
    await pawl.limits.set("tenant", { concurrent: 2 });
    const meter = new Meter();
    const open = gate();
    const work = job({
      name: "tenant",
      queue: "tenant",
      run: (_, key: string) => meter.during(key, () => (key === "stuck" ? open.pass() : turns(5))),
    });
    await serve([work], { ...rarely, queues: { tenant: 10 } });
    const of = (key: string, count: number) =>
      pawl.startMany(
        work,
        Array.from({ length: count }, () => ({ input: key, concurrency: { name: "tenant", key } })),
      );
    const stuck = await of("stuck", 40);
    const free = [...(await of("a", 10)), ...(await of("b", 10))];
    for (const { runId } of free) await pawl.result(runId);
    open.open();
    for (const { runId } of stuck) await pawl.result(runId);
    expect(Object.fromEntries(meter.most)).toEqual({ stuck: 2, a: 2, b: 2 });
    expect(await excess()).toEqual([]);
  });

  it("admits the runs of a key in order, without any poll", async () => {
    await pawl.limits.set("order", { concurrent: 1 });
    const order: number[] = [];
    const work = job({ name: "order", queue: "order", run: (_, n: number) => void order.push(n) });
    await serve([work], { ...rarely, queues: { order: 10 } });
    const numbers = Array.from({ length: 30 }, (_, n) => n);
    const started = [];
    for (const n of numbers) started.push(await pawl.start(work, n, { concurrency: "order" }));
    for (const { runId } of started) await pawl.result(runId);
    expect(order).toEqual(numbers);
  });

  it("is held across the steps of a machine, and not while it waits", async () => {
    await pawl.limits.set("steps", { concurrent: 1 });
    const seen: string[] = [];
    const walk = machine({
      name: "walk",
      queue: "walk",
      state: type<string>(),
      steps: {
        start: (ctx) => ctx.next("first", ctx.state, { concurrency: "steps" }),
        first: (ctx) => {
          seen.push(`${ctx.state} first`);
          return ctx.next("second", ctx.state);
        },
        second: (ctx) => {
          seen.push(`${ctx.state} second`);
          return ctx.awaitSignal("go", "last", ctx.state);
        },
        last: (ctx) => ctx.next("end", ctx.state, { concurrency: null }),
        end: (ctx) => ctx.done(),
      },
    });
    await serve([walk], { ...rarely, queues: { walk: 10 } });
    const runs = [await pawl.start(walk, "a"), await pawl.start(walk, "b"), await pawl.start(walk, "c")];
    for (const { runId } of runs) {
      await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
    }
    for (const [index, entry] of seen.entries()) {
      if (index % 2 === 0) expect(seen[index + 1]).toBe(entry.replace("first", "second"));
    }
    for (const { runId } of runs) await pawl.signal(runId, "go");
    for (const { runId } of runs) await pawl.result(runId);
    expect(await excess()).toEqual([]);
  });

  it("is free while a workflow sleeps or waits, and taken again when it goes on", async () => {
    await pawl.limits.set("flow", { concurrent: 1 });
    const flow = workflow({
      name: "flow",
      queue: "flow",
      run: async ({ step }) => {
        await step.run("before", () => turns(3));
        await step.waitForEvent("go");
        return step.run("after", () => "through");
      },
    });
    await serve([flow], { ...rarely, queues: { flow: 10 } });
    const start = () => pawl.start(flow, null, { concurrency: "flow" });
    const runs = [await start(), await start(), await start()];
    for (const { runId } of runs) {
      await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
    }
    for (const { runId } of runs) await pawl.signal(runId, "go");
    for (const { runId } of runs) expect(await pawl.result(runId)).toBe("through");
    expect(await excess()).toEqual([]);
  });

  it("applies to children and invoked runs", async () => {
    await pawl.limits.set("family", { concurrent: 2 });
    const meter = new Meter();
    const leaf = job({ name: "leaf", queue: "family", run: () => meter.during("", () => turns(5)) });
    const parent = machine({
      name: "family-parent",
      queue: "family",
      state: type<null>(),
      steps: {
        start: (ctx) =>
          ctx.spawn(
            "end",
            Array.from({ length: 10 }, () => child(leaf, undefined as never, { concurrency: "family" })),
            null,
          ),
        end: (ctx) => ctx.done(),
      },
    });
    const invoking = workflow({
      name: "invoking",
      queue: "family",
      run: ({ step }) => step.invoke("leaf", leaf, undefined as never, { concurrency: "family" }),
    });
    await serve([leaf, parent, invoking], { ...rarely, queues: { family: 20 } });
    const one = await pawl.start(parent, null);
    const other = await pawl.start(invoking, null);
    await pawl.result(one.runId);
    await pawl.result(other.runId);
    expect(meter.most.get("")).toBe(2);
    expect(await excess()).toEqual([]);
  });

  it("works together with a partition key and a rate limit", async () => {
    await pawl.limits.set("both", { concurrent: 2, allowed: 500, period: "1s", burst: 5 });
    const meter = new Meter();
    const work = job({
      name: "both",
      queue: "both",
      run: (_, key: string) => meter.during(key, () => meter.during("", () => turns(3))),
    });
    for (let n = 0; n < 2; n++) await serve([work], { queues: { both: 10 } });
    const items = Array.from({ length: 40 }, (_, n) => {
      const key = `k${n % 4}`;
      return { input: key, partitionKey: key, concurrency: "both", rateLimit: "both" };
    });
    const started = await pawl.startMany(work, items);
    for (const { runId } of started) await pawl.result(runId);
    expect(meter.most.get("")).toBeLessThanOrEqual(2);
    for (const key of ["k0", "k1", "k2", "k3"]) expect(meter.most.get(key)).toBe(1);
    expect(await excess()).toEqual([]);
  });

  it("that is raised admits runs, and why says who holds the slots before", async () => {
    await pawl.limits.set("raised", { concurrent: 1 });
    const open = gate();
    const work = job({ name: "raised", queue: "raised", run: () => open.pass() });
    await serve([work], { queues: { raised: 10 } });
    const start = () => pawl.start(work, undefined, { concurrency: "raised" });
    const runs = [await start(), await start(), await start()];
    const last = runs[2]!.runId;
    await until("it waits for a slot", async () => (await pawl.why(last)).reason === "limit_full");
    const why = await pawl.why(last);
    expect(why).toMatchObject({
      concurrency: "raised",
      concurrent: 1,
      held: 1,
      holders: [runs[0]!.runId],
      ahead: 1,
    });
    expect(why.text).toContain("1 run is before it in line");
    await pawl.limits.set("raised", { concurrent: 3 });
    await until("all execute", async () => (await pawl.runs.get(last)).phase === "executing");
    open.open();
    for (const { runId } of runs) await pawl.result(runId);
  });
});

describe("limits.set and limits.list", () => {
  it("keep a rate, a number of slots, or both", async () => {
    await pawl.limits.set("listed", { concurrent: 4 });
    const listed = async () => (await pawl.limits.list()).find(({ name }) => name === "listed");
    const none = { allowed: null, periodMs: null, burst: null };
    expect(await listed()).toEqual({ name: "listed", ...none, concurrent: 4 });
    await pawl.limits.set("listed", { concurrent: 5, allowed: 2, period: "1s" });
    expect(await listed()).toEqual({ name: "listed", allowed: 2, periodMs: 1_000, burst: 2, concurrent: 5 });
    await pawl.limits.set("listed", { allowed: 3, period: "1s" });
    expect(await listed()).toEqual({
      name: "listed",
      allowed: 3,
      periodMs: 1_000,
      burst: 3,
      concurrent: null,
    });
  });

  it.each([[{ concurrent: 0 }], [{ concurrent: 1.5 }], [{ concurrent: 40_000 }], [{ burst: 2 }], [{}]])(
    "refuse %o",
    async (options) => {
      await expect(pawl.limits.set("refused", options as never)).rejects.toThrow(InvalidOption);
    },
  );
});

it("cancelling the first run of a limit before it begins makes the next one claimable at once", async () => {
  await pawl.limits.set("first", { concurrent: 1 });
  const [first] = await pawl.startMany(
    job({ name: "in-line", queue: "nobody", run: () => null }),
    Array.from({ length: 3 }, () => ({ input: null, concurrency: "first" })),
  );
  const holds = async () => {
    const rows = await sql<{ hold: number }>("select hold from runs where name = 'in-line' order by id");
    return rows.map(({ hold }) => hold);
  };
  expect(await holds()).toEqual([0, 32, 32]);
  await pawl.runs.cancel(first!.runId);
  expect(await holds()).toEqual([0, 0, 32]);
});
