import { job, machine, serve as serveWorker } from "pawl";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { shortLease, silent, testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { proxyTo } from "../../support/proxies/proxy.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, url } = database;

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

  it("releases the claim also of a run that somebody has locked at that moment", async () => {
    const locked = gate();
    const held = job({ name: "held", queue: "held", run: () => locked.pass() });
    const worker = await serve([held], { drainTimeout: 0 });
    const { runId } = await pawl.start(held, null);
    await until("it runs", locked.entered);
    const other = await database.connect();
    await other.query("begin");
    await other.query("select from runs where id = $1 for update", [runId]);
    const stopping = worker.stop();
    const passedBy = "select from workers where queues = '{}'";
    await until("the worker has tried to let it go", async () => (await sql(passedBy)).length > 0);
    await other.query("commit");
    await stopping;
    locked.open();
    const [row] = await sql("select status, attempt, crashes, locked_by from runs where id = $1", [runId]);
    expect(row).toEqual({ status: "runnable", attempt: 0, crashes: 0, locked_by: null });
    expect(await sql(passedBy)).toEqual([]);
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
    const worker = serveWorker([stranded], { url: proxy.url, ...shortLease, logger });
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
