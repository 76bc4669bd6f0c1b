import { job, machine } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent, testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, url } = database;

describe("queues and slots", () => {
  it("a queue runs as many runs at once as its concurrency, and no more", async () => {
    let now = 0;
    let most = 0;
    const busy = job({
      name: "busy",
      queue: "narrow",
      run: async () => {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setTimeout(resolve, 5));
        now--;
      },
    });
    await serve([busy], { queues: { narrow: 3 } });
    const started = await Promise.all(Array.from({ length: 30 }, () => pawl.start(busy, null)));
    for (const { runId } of started) await pawl.result(runId);
    expect(most).toBe(3);
  });

  it("one blocked queue does not hold up another", async () => {
    const blocked = gate();
    const slow = job({ name: "slow", queue: "slow", run: blocked.pass });
    const fast = job({ name: "fast", queue: "fast", run: () => "fast" });
    await serve([slow, fast], { queues: { slow: 1, fast: 1 } });
    await pawl.start(slow, null);
    await until("the slow one runs", blocked.entered);
    expect(await pawl.result((await pawl.start(fast, null)).runId)).toBe("fast");
    blocked.open();
  });

  it("runs of other processes are found by polling, without any nudge", async () => {
    const polled = job({ name: "polled", queue: "polled", run: () => "found" });
    await serve([polled], { maxPollInterval: "100ms" });
    const { runId } = (
      await sql<{ runId: string }>(
        `select id as "runId"
         from start_runs('{"(polled,1,job,polled,,,,,,,,,,,,,,,,,)"}', array['null'], false, true, null, null)`,
      )
    )[0]!;
    expect(await pawl.result(runId)).toBe("found");
  });

  it("a run started where a worker has a free slot never waits for a claim", async () => {
    const direct = job({ name: "direct", queue: "direct", run: () => 1 });
    await serve([direct], { maxPollInterval: "1h", pollInterval: "1h" });
    const started = await pawl.start(direct, null);
    const [row] = await sql("select claim_id is not null as claimed, turn::int from runs where id = $1", [
      started.runId,
    ]);
    expect(row).toMatchObject({ claimed: true });
    expect(await pawl.result(started.runId)).toBe(1);
  });
});

describe("nudges: with polls an hour apart", () => {
  const rarely = { pollInterval: "1h", maxPollInterval: "1h" } as const;

  it("a delayed start, a retry and a next of another priority begin when they are due", async () => {
    const due = machine({
      name: "due",
      queue: "due",
      steps: {
        start: (ctx) => (ctx.attempt < 2 ? ctx.retry(ctx.state, 20) : ctx.next("last", {}, { priority: 3 })),
        last: (ctx) => ctx.done("on time"),
      },
    });
    await serve([due], rarely);
    const started = await Promise.all([
      pawl.start(due, {}, { delay: 50 }),
      pawl.start(due, {}, { at: new Date(Date.now() + 80) }),
      pawl.start(due, {}),
    ]);
    for (const { runId } of started) expect(await pawl.result(runId)).toBe("on time");
  });

  it("runs that fell due or were started while all slots were taken begin when a slot frees", async () => {
    const blocked = gate();
    const full = job({
      name: "full",
      queue: "full",
      run: (_ctx, wait: boolean) => (wait ? blocked.pass() : undefined),
    });
    await serve([full], { ...rarely, queues: { full: 1 } });
    await pawl.start(full, true);
    await until("the slot is taken", blocked.entered);
    const waiting = [
      await pawl.start(full, false),
      await pawl.start(full, false, { delay: 10 }),
      await pawl.start(full, false, { uniqueKey: "f", uniqueScope: ["runnable"] }),
    ];
    await until("all are due", async () => {
      const rows = await sql("select from runs where queue = 'full' and eligible_at > clock_timestamp()");
      return rows.length === 0;
    });
    blocked.open();
    for (const { runId } of waiting) expect(await pawl.result(runId)).toBe(null);
  });
});

describe("definition.serve", () => {
  it("serves that definition alone", async () => {
    const alone = job({ name: "alone", queue: "alone", run: () => "served" });
    const worker = alone.serve({ url, logger: silent });
    await worker.ready;
    expect(await pawl.result((await pawl.start(alone)).runId)).toBe("served");
    await worker.stop();
    expect(() => alone.serve({ quueues: {} } as never)).toThrow(/did you mean "queues"/);
  });
});
