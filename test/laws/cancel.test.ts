import { child, job, machine, type Phase, RunCancelled } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { gate } from "../support/gate.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const engine = testEngine(database);
const { pawl } = engine;
// No lease is to lapse here, however slow the machine.
const serve: typeof engine.serve = (definitions, options) =>
  engine.serve(definitions, { lease: "1m", ...options });
const { sql } = database;

const executed: string[] = [];
const note = job({
  name: "note",
  run: (_ctx, what: string) => {
    executed.push(what);
    return what;
  },
});
await serve([note]);

const phaseOf = async (runId: string): Promise<Phase> => (await pawl.runs.get(runId)).phase;
const phaseIs = (runId: string, phase: Phase) =>
  until(`run ${runId} is ${phase}`, async () => (await phaseOf(runId)) === phase);

/** Cancels a run, and sees that it is over for good. */
async function expectCancelled(runId: string): Promise<void> {
  expect(await pawl.runs.cancel(runId, { reason: "not needed" })).toEqual({ cancelled: 1 });
  expect(await pawl.runs.get(runId)).toMatchObject({
    status: "cancelled",
    phase: "cancelled",
    output: null,
    error: { name: "RunCancelled", code: "RunCancelled", message: "not needed" },
    completedAt: expect.any(Date),
    expiresAt: expect.any(Date),
  });
  const error: unknown = await pawl.result(runId).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(RunCancelled);
  expect(error).toMatchObject({ code: "RunCancelled", runId, reason: "not needed" });
  expect(await sql("select locked_by, hold from runs where id = $1", [runId])).toEqual([
    { locked_by: null, hold: 0 },
  ]);
}

const waiter = machine({
  name: "waiter",
  steps: {
    start: (ctx) => ctx.awaitSignal("go", "went", ctx.state),
    went: (ctx) => {
      executed.push("went");
      return ctx.done();
    },
  },
});
const parent = machine({
  name: "parent",
  steps: {
    start: (ctx) => ctx.spawn("gather", [child("waiter", {}), child("waiter", {})], ctx.state),
    gather: (ctx) => ctx.done(ctx.children.map(({ status }) => status)),
  },
});
await serve([waiter, parent]);

describe("a run is cancelled at once and for good", () => {
  it("that is not due yet", async () => {
    const { runId } = await pawl.start(note, "delayed", { delay: "1h" });
    await expectCancelled(runId);
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
    await pawl.result((await pawl.start(note, "after delayed")).runId);
    expect(executed).not.toContain("delayed");
  });

  it("that is runnable and waits for a slot", async () => {
    const slot = gate();
    const queued = job({
      name: "queued",
      queue: "one-slot",
      run: (_ctx, what: string) => {
        executed.push(what);
        return slot.pass();
      },
    });
    await serve([queued], { queues: { "one-slot": 1 } });
    const first = await pawl.start(queued, "first");
    await until("the slot is taken", slot.entered);
    const second = await pawl.start(queued, "second");
    const third = await pawl.start(queued, "third");
    await expectCancelled(second.runId);
    slot.open();
    for (const { runId } of [first, third]) await pawl.result(runId);
    expect(executed).toEqual(expect.arrayContaining(["first", "third"]));
    expect(executed).not.toContain("second");
  });

  it("that awaits a signal: its inbox is cleared, and it takes no more", async () => {
    const { runId } = await pawl.start(waiter, {});
    await phaseIs(runId, "awaiting_signal");
    await pawl.signal(runId, "other", {}, { dedupKey: "once" });
    await pawl.signal(runId, "another");
    await expectCancelled(runId);
    expect(
      await sql("select name, payload, consumed_at is null as waits from signals where run_id = $1", [runId]),
    ).toEqual([{ name: "other", payload: null, waits: false }]);
    await expect(pawl.signal(runId, "go")).rejects.toMatchObject({ code: "RunEnded" });
    expect(await pawl.signal(runId, "other", {}, { dedupKey: "once" })).toEqual({ delivered: false });
    expect(executed).not.toContain("went");
  });

  it("that awaits its children: they go on, and their end wakes nobody", async () => {
    const { runId } = await pawl.start(parent, {});
    await phaseIs(runId, "awaiting_children");
    const children = await childrenOf(runId);
    await expectCancelled(runId);
    for (const id of children) {
      await phaseIs(id, "awaiting_signal");
      await pawl.signal(id, "go");
      await pawl.result(id);
    }
    expect(await phaseOf(runId)).toBe("cancelled");
  });

  it("that is blocked by its partition key, and the next in line comes after the holder", async () => {
    const open = gate();
    const order: string[] = [];
    const keyed = job({
      name: "keyed",
      run: async (_ctx, what: string) => {
        order.push(what);
        if (what === "holder") await open.pass();
      },
    });
    await serve([keyed]);
    const holder = await pawl.start(keyed, "holder", { partitionKey: "line" });
    await until("the key is held", open.entered);
    const blocked = await pawl.start(keyed, "blocked", { partitionKey: "line" });
    const next = await pawl.start(keyed, "next", { partitionKey: "line" });
    await until("they are blocked", async () => {
      const rows = await sql("select from runs where id = any ($1) and hold = 1", [
        [blocked.runId, next.runId],
      ]);
      return rows.length === 2;
    });
    await expectCancelled(blocked.runId);
    open.open();
    await pawl.result(holder.runId);
    await pawl.result(next.runId);
    expect(order).toEqual(["holder", "next"]);
  });

  it("that its rate limit has put off", async () => {
    await pawl.limits.set("hourly", { allowed: 1, period: "1h", burst: 1 });
    await pawl.result((await pawl.start(note, "token", { rateLimit: "hourly" })).runId);
    const { runId } = await pawl.start(note, "throttled", { rateLimit: "hourly" });
    await until("it is throttled", async () => {
      return (await sql("select from runs where id = $1 and throttled", [runId])).length === 1;
    });
    await expectCancelled(runId);
    expect(await sql("select throttled from runs where id = $1", [runId])).toEqual([{ throttled: false }]);
  });

  it("that was started by a name nobody has registered, and stays so when a worker comes", async () => {
    const { runId } = await pawl.start("newcomer", "early");
    await expectCancelled(runId);
    const newcomer = job({ name: "newcomer", run: (_ctx, what: string) => void executed.push(what) });
    await serve([newcomer]);
    const later = await pawl.start("newcomer", "later");
    await pawl.result(later.runId);
    expect(await phaseOf(runId)).toBe("cancelled");
    expect(executed).toContain("later");
    expect(executed).not.toContain("early");
  });

  it("that is first in line for its key where nobody serves it, and the next is let in", async () => {
    const line = { partitionKey: "front" };
    const first = await pawl.start(note, "front", { ...line, priority: -1, queue: "nobody-serves" });
    const second = await pawl.start(note, "behind", line);
    await until("the second is blocked", async () => {
      return (await sql("select from runs where id = $1 and hold = 1", [second.runId])).length === 1;
    });
    await expectCancelled(first.runId);
    expect(await pawl.result(second.runId)).toBe("behind");
  });
});

async function childrenOf(runId: string): Promise<string[]> {
  const rows = await sql<{ id: string }>("select id::text from runs where parent_id = $1 order by position", [
    runId,
  ]);
  return rows.map(({ id }) => id);
}

describe("the answer of cancel", () => {
  it("cancelling a cancelled run is a no-op: the first reason stays", async () => {
    const { runId } = await pawl.start(note, "twice", { delay: "1h" });
    await pawl.runs.cancel(runId, { reason: "first" });
    const before = await pawl.runs.get(runId);
    expect(await pawl.runs.cancel(runId, { reason: "second" })).toEqual({ cancelled: 0 });
    expect(await pawl.runs.get(runId)).toEqual(before);
  });

  it("a cancel without a reason records none", async () => {
    const { runId } = await pawl.start(note, "plain", { delay: "1h" });
    await pawl.runs.cancel(runId);
    expect((await pawl.runs.get(runId)).error).toBe(null);
    await expect(pawl.result(runId)).rejects.toMatchObject({ code: "RunCancelled", reason: undefined });
  });

  it("a run that is done or failed has ended: RunEnded, with cascade too, and it stays as it is", async () => {
    const failing = machine({ name: "failing", steps: { start: (ctx) => ctx.stop("no") } });
    await serve([failing]);
    const done = await pawl.start(note, "done");
    const failed = await pawl.start(failing, {});
    await pawl.result(done.runId);
    await pawl.result(failed.runId).catch(() => {});
    for (const [runId, status] of [
      [done.runId, "completed"],
      [failed.runId, "failed"],
    ] as const) {
      for (const cascade of [false, true]) {
        const cancelling = pawl.runs.cancel(runId, { cascade });
        await expect(cancelling).rejects.toMatchObject({
          code: "RunEnded",
          message: expect.stringContaining(status),
        });
      }
      expect((await pawl.runs.get(runId)).status).toBe(status);
    }
  });

  it("a run that does not exist is RunNotFound, whatever its id looks like", async () => {
    for (const runId of ["4611686018427387904", "no-such-run", "0", "-1", "9223372036854775808"]) {
      await expect(pawl.runs.cancel(runId)).rejects.toMatchObject({ code: "RunNotFound" });
    }
  });

  it("refuses options that are unknown or of the wrong kind, and cancels nothing", async () => {
    const { runId } = await pawl.start(note, "kept", { delay: "1h" });
    for (const [options, message] of [
      [{ resaon: "x" }, /did you mean "reason"/],
      [{ reason: 7 }, /reason/],
      [{ reason: "x".repeat(8_193) }, /reason/],
      [{ cascade: "yes" }, /cascade must be true or false/],
    ] as const) {
      const cancelling = pawl.runs.cancel(runId, options as never);
      await expect(cancelling).rejects.toMatchObject({
        code: "InvalidOption",
        message: expect.stringMatching(message),
      });
    }
    await expect(pawl.runs.cancel(7 as never)).rejects.toMatchObject({ code: "InvalidOption" });
    expect(await phaseOf(runId)).toBe("runnable");
  });
});

describe("a unique key", () => {
  it("is free again when its holder is cancelled, unless its scope says otherwise", async () => {
    const usual = await pawl.start(note, "u", { delay: "1h", uniqueKey: "usual" });
    await pawl.runs.cancel(usual.runId);
    expect(await pawl.start(note, "u", { delay: "1h", uniqueKey: "usual" })).toMatchObject({ created: true });

    const options = { delay: "1h", uniqueKey: "forever", uniqueScope: ["runnable", "cancelled"] } as const;
    const kept = await pawl.start(note, "k", options);
    await pawl.runs.cancel(kept.runId);
    expect(await pawl.start(note, "k", options)).toEqual({
      runId: kept.runId,
      created: false,
      status: "cancelled",
    });
  });

  it("is given up by a run whose scope begins with cancel, if another has it by then", async () => {
    const late = { delay: "1h", uniqueKey: "late", uniqueScope: ["cancelled"] } as const;
    const first = await pawl.start(note, "l", late);
    const second = await pawl.start(note, "l", late);
    await pawl.runs.cancel(first.runId);
    expect(await pawl.runs.cancel(second.runId)).toEqual({ cancelled: 1 });
    const usual = { delay: "1h", uniqueKey: "late" } as const;
    expect(await pawl.start(note, "l", usual)).toMatchObject({ runId: first.runId, created: false });
  });
});
