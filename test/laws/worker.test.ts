import { connect, job, type Logger, machine, serve as serveWorker, type } from "pawl";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent, testEngine } from "../support/engine.js";
import { proxyTo } from "../support/proxy.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, url } = database;

/** A step that waits until the test lets it go. */
function gate() {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  let entered = 0;
  return {
    open,
    pass: async () => {
      entered++;
      await opened;
    },
    entered: () => entered,
  };
}

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
        `select id as "runId" from start(0::smallint, '{polled}', '{1}', '{job}', '{polled}', null, array['null'],
           null, null, null, null, null, null, null, null, false, null, null, null)`,
      )
    )[0]!;
    expect(await pawl.result(runId)).toBe("found");
  });

  it("a run started where a worker has a free slot never waits for a claim", async () => {
    const direct = job({ name: "direct", queue: "direct", run: () => 1 });
    await serve([direct], { maxPollInterval: "1h", pollInterval: "1h" });
    const started = await pawl.start(direct, null);
    const [row] = await sql("select claim_id is not null as claimed, turn from runs where id = $1", [
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

describe("graceful stop", () => {
  it("lets running steps finish and commits their outcomes", async () => {
    const finishing = gate();
    const last = job({ name: "last", queue: "last", run: async () => (await finishing.pass(), "finished") });
    const worker = await serve([last], { drainTimeout: "10s" });
    const { runId } = await pawl.start(last, null);
    await until("it runs", finishing.entered);
    const stopping = worker.stop();
    finishing.open();
    await stopping;
    expect((await pawl.runs.get(runId)).output).toBe("finished");
    expect(await sql("select from workers where serves @> '{last@1}'")).toEqual([]);
  });

  it("aborts what does not finish, and releases its claim with the attempt unchanged", async () => {
    let aborted = false;
    let started = false;
    const stubborn = job({
      name: "stubborn",
      queue: "stubborn",
      run: (ctx) =>
        new Promise(() => {
          started = true;
          ctx.signal.addEventListener("abort", () => (aborted = true));
        }),
    });
    const worker = await serve([stubborn], { drainTimeout: 0 });
    const { runId } = await pawl.start(stubborn, null);
    await until("it runs", () => started);
    await worker.stop();
    expect(aborted).toBe(true);
    const [row] = await sql("select status, attempt, crashes, locked_by from runs where id = $1", [runId]);
    expect(row).toEqual({ status: "runnable", attempt: 0, crashes: 0, locked_by: null });
  });

  it("commits an outcome that comes within a second after the abort", async () => {
    let started = false;
    const obedient = job({
      name: "obedient",
      queue: "obedient",
      run: (ctx) =>
        new Promise((resolve) => {
          started = true;
          ctx.signal.addEventListener("abort", () => resolve("wrapped up"));
        }),
    });
    const worker = await serve([obedient], { drainTimeout: 0 });
    const { runId } = await pawl.start(obedient, null);
    await until("it runs", () => started);
    await worker.stop();
    expect((await pawl.runs.get(runId)).output).toBe("wrapped up");
  });

  it("an error that a step throws because it was aborted fails nothing: the run is runnable again as it was", async () => {
    const honest = gate();
    const sleeping = machine({
      name: "sleeping",
      queue: "sleeping",
      steps: {
        start: async (ctx) => {
          void honest.pass();
          await sleep(60_000, undefined, { signal: ctx.signal });
          return ctx.done();
        },
      },
      handle: (_error, ctx) => ctx.stop("handle must not see the stop"),
    });
    const dozing = job({
      name: "dozing",
      queue: "sleeping",
      run: async (ctx) => {
        void honest.pass();
        await sleep(60_000, undefined, { signal: ctx.signal });
      },
    });
    const worker = await serve([sleeping, dozing], { drainTimeout: 10 });
    const started = [await pawl.start(sleeping, {}), await pawl.start(dozing)];
    await until("both run", () => honest.entered() === 2);
    await worker.stop();
    for (const { runId } of started) {
      const [row] = await sql("select status, attempt, error, locked_by from runs where id = $1", [runId]);
      expect(row).toEqual({ status: "runnable", attempt: 0, error: null, locked_by: null });
    }
  });

  it("a step that first looks at its signal after the stop finds it aborted", async () => {
    const asked = gate();
    let aborted: boolean | undefined;
    const lateLook = job({
      name: "late-look",
      queue: "late-look",
      run: async (ctx) => {
        await asked.pass();
        aborted = ctx.signal.aborted;
      },
    });
    const worker = await serve([lateLook], { drainTimeout: 10 });
    await pawl.start(lateLook);
    await until("it runs", asked.entered);
    const stopping = worker.stop();
    setTimeout(asked.open, 200);
    await stopping;
    expect(aborted).toBe(true);
  });

  it("no further step begins once the stop was asked for", async () => {
    const first = gate();
    const walking = machine({
      name: "walking",
      queue: "walking",
      steps: {
        start: async (ctx) => {
          await first.pass();
          return ctx.next("second", { here: true });
        },
        second: (ctx) => ctx.done("must not run here"),
      },
    });
    const worker = await serve([walking], { drainTimeout: "10s" });
    const { runId } = await pawl.start(walking, {});
    await until("it runs", first.entered);
    const stopping = worker.stop();
    first.open();
    await stopping;
    expect(await pawl.runs.get(runId)).toMatchObject({
      phase: "runnable",
      step: "second",
      state: { here: true },
    });
  });

  it("ends although the lease was lost and the database is away", async () => {
    const proxy = await proxyTo(url);
    let lost = false;
    const logger = {
      ...silent,
      error: (_details: object | string, text?: string) => void (lost ||= text!.includes("lease")),
    };
    const stranded = job({ name: "stranded", queue: "stranded", run: () => 0 });
    const worker = serveWorker([stranded], { url: proxy.url, lease: "300ms", heartbeat: "50ms", logger });
    await worker.ready;
    proxy.cut();
    await until("the lease is lost", () => lost);
    await worker.stop();
    proxy.restore();
  });

  it("waits for a start in flight and lets its run go, with no attempt counted", async () => {
    const hasty = job({ name: "hasty", queue: "hasty", maxAttempts: 1, run: () => "ran" });
    const worker = await serve([hasty]);
    const user = await database.connect();
    await user.query("begin");
    await user.query("lock table runs in share row exclusive mode");
    const starting = pawl.start(hasty);
    await until("the insert waits", async () => {
      const rows = await sql(
        "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
      );
      return rows.length > 0;
    });
    const stopping = worker.stop();
    await user.query("commit");
    const { runId } = await starting;
    await stopping;
    await serve([hasty]);
    expect(await pawl.result(runId)).toBe("ran");
  });

  it("releases claims that have not begun at once", async () => {
    const first = gate();
    const queued = job({ name: "queued", queue: "queued", run: first.pass });
    const started = await Promise.all(Array.from({ length: 5 }, () => pawl.start(queued, null)));
    const worker = await serve([queued], { queues: { queued: 1 }, prefetch: 4, drainTimeout: "10s" });
    await until("one runs and four are claimed", async () => {
      const [row] = await sql<{ n: string }>(
        "select count(*) as n from runs where queue = 'queued' and status = 'executing'",
      );
      return row!.n === "5" && first.entered() === 1;
    });
    const stopping = worker.stop();
    await until("four are runnable again", async () => {
      const [row] = await sql<{ n: string }>(
        "select count(*) as n from runs where queue = 'queued' and status = 'runnable' and attempt = 0",
      );
      return row!.n === "4";
    });
    first.open();
    await stopping;
    expect((await pawl.runs.get(started[0]!.runId)).status).toBe("completed");
  });

  it("can be asked twice, and before the worker is ready, which then never is", async () => {
    const idle = job({ name: "idle", run: () => 0 });
    const worker = await serve([idle]);
    await Promise.all([worker.stop(), worker.stop()]);
    const hasty = serveWorker([idle], { url, logger: silent });
    await hasty.stop();
    await expect(hasty.ready).rejects.toThrow(/stopped before it was ready/);
    expect(await sql("select from workers where serves @> '{idle@1}'")).toEqual([]);
  });
});

describe("the heartbeat", () => {
  it("a step that blocks the event loop for three leases is not reclaimed", async () => {
    const attempts: number[] = [];
    const spinning = job({
      name: "spinning",
      queue: "spinning",
      run: (ctx) => {
        attempts.push(ctx.attempt);
        const end = Date.now() + 1_800;
        while (Date.now() < end);
        return "done";
      },
    });
    await serve([spinning], { lease: "600ms", heartbeat: "100ms", reapInterval: "50ms" });
    const { runId } = await pawl.start(spinning, null);
    expect(await pawl.result(runId)).toBe("done");
    expect(attempts).toEqual([0]);
    expect((await pawl.runs.get(runId)).attempt).toBe(0);
  });

  it("a worker that was reaped aborts the step, drops its outcome, and goes on under a new id", async () => {
    const zombie = gate();
    let signal: AbortSignal | undefined;
    const results = ["zombie", "successor"];
    const haunted = job({
      name: "haunted",
      queue: "haunted",
      run: async (ctx) => {
        const result = results.shift();
        if (result === "zombie") {
          signal = ctx.signal;
          await zombie.pass();
        }
        return result;
      },
    });
    await serve([haunted], { lease: "1s", heartbeat: "100ms" });
    const { runId } = await pawl.start(haunted, null);
    await until("it runs", zombie.entered);
    const [before] = await sql<{ id: string }>("select id from workers where serves @> '{haunted@1}'");
    await sql("update settings set beats_since = clock_timestamp() - interval '1 hour'");
    await sql("update workers set seen_at = seen_at - interval '1 hour' where id = $1", [before!.id]);
    await until("the step is aborted", () => signal!.aborted);
    expect(await pawl.result(runId)).toBe("successor");
    zombie.open();
    const [after] = await sql<{ id: string }>("select id from workers where serves @> '{haunted@1}'");
    expect(after!.id).not.toBe(before!.id);
    // the slot of the zombie is free again, and its outcome changed nothing
    expect(await pawl.result((await pawl.start(haunted, null)).runId)).toBe(null);
    expect(await pawl.runs.get(runId)).toMatchObject({ output: "successor", attempt: 1 });
  });

  it("claims that a lost answer left behind are let go", async () => {
    const orphaned = job({ name: "orphaned", queue: "orphaned", run: () => "run" });
    await serve([orphaned], { pollInterval: "1h", maxPollInterval: "1h" });
    const [worker] = await sql<{ id: string }>("select id from workers where serves @> '{orphaned@1}'");
    const { runId } = await pawl.start(orphaned, null, { delay: "1h" });
    await sql(
      "update runs set status = 'executing', locked_by = $2, claim_id = 4711, eligible_at = clock_timestamp() where id = $1",
      [runId, worker!.id],
    );
    expect(await pawl.result(runId, { timeout: "25s" })).toBe("run");
  });
});

describe("an outage of the database", () => {
  it("costs no run and ends no process: the worker commits what was in flight and goes on", async () => {
    const proxy = await proxyTo(url);
    const entered = gate();
    const surviving = machine({
      name: "surviving",
      queue: "surviving",
      state: type<{ n: number }>(),
      steps: {
        start: async (ctx) => {
          await entered.pass();
          return ctx.next("finish", { n: ctx.state.n + 1 });
        },
        finish: (ctx) => ctx.done(ctx.state.n),
      },
    });
    const warnings: string[] = [];
    const logger: Logger = {
      ...silent,
      warn: (_details: object | string, message?: string) => void warnings.push(message ?? ""),
    };
    await serve([surviving], { url: proxy.url, lease: "30s", heartbeat: "100ms", logger });
    const { runId } = await pawl.start(surviving, { n: 0 });
    await until("it runs", entered.entered);
    proxy.cut();
    entered.open();
    await until("the commit has failed", () => warnings.some((message) => message.includes("commit failed")));
    proxy.restore();
    expect(await pawl.result(runId)).toBe(1);
    expect((await pawl.runs.get(runId)).attempt).toBe(0);
    const next = await pawl.start(surviving, { n: 5 });
    expect(await pawl.result(next.runId)).toBe(6);
  });

  it("longer than the lease: the steps are aborted, and the runs begin again when it is back", async () => {
    const proxy = await proxyTo(url);
    const attempts: number[] = [];
    const first = gate();
    let aborted = false;
    const patient = job({
      name: "patient",
      queue: "patient",
      run: async (ctx) => {
        attempts.push(ctx.attempt);
        if (attempts.length > 1) return "second try";
        ctx.signal.addEventListener("abort", () => (aborted = true));
        await first.pass();
        return "first try";
      },
    });
    await serve([patient], { url: proxy.url, lease: "500ms", heartbeat: "50ms", reapInterval: "50ms" });
    const { runId } = await pawl.start(patient, null);
    await until("it runs", first.entered);
    proxy.cut();
    await until("the step is aborted", () => aborted);
    first.open();
    proxy.restore();
    expect(await pawl.result(runId)).toBe("second try");
    expect(attempts).toEqual([0, 1]);
  });

  it("at boot: the worker waits for the database, and the client answers Unavailable until it is there", async () => {
    const proxy = await proxyTo(url);
    proxy.cut();
    const late = job({ name: "late", queue: "late", run: () => "late" });
    const worker = serveWorker([late], { url: proxy.url, logger: silent });
    const client = connect(proxy.url);
    await expect(client.start(late, null)).rejects.toMatchObject({ code: "Unavailable" });
    proxy.restore();
    await worker.ready;
    expect(await client.result((await client.start(late, null)).runId)).toBe("late");
    await worker.stop();
    await client.close();
  });

  it("connections killed by the server one by one are replaced", async () => {
    const resilient = job({ name: "resilient", queue: "resilient", run: (_ctx, n: number) => n });
    await serve([resilient]);
    for (let round = 0; round < 5; round++) {
      await sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pawl' and datname = current_database()",
      );
      const { runId } = await until("a start succeeds", () => pawl.start(resilient, round).catch(() => null));
      expect(await pawl.result(runId)).toBe(round);
    }
  });
});
