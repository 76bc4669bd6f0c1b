import { connect, job, type Logger, machine, serve as serveWorker, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { shortLease, silent, testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { proxyTo } from "../../support/proxies/proxy.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, url } = database;

describe("the heartbeat", () => {
  it("a step that blocks the event loop for three leases is not reclaimed", async () => {
    const attempts: number[] = [];
    const spinning = job({
      name: "spinning",
      queue: "spinning",
      run: (ctx) => {
        attempts.push(ctx.attempt);
        // Blocks this thread, and takes no processor time from the heartbeat's.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 9_000);
        return "done";
      },
    });
    await serve([spinning], { ...shortLease, reapInterval: "50ms" });
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
    await serve([haunted]);
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

  it("the worker releases claims that a lost answer left behind", async () => {
    const orphaned = job({ name: "orphaned", queue: "orphaned", run: () => "run" });
    await serve([orphaned], { pollInterval: "1h", maxPollInterval: "1h" });
    const [worker] = await sql<{ id: string }>("select id from workers where serves @> '{orphaned@1}'");
    const { runId } = await pawl.start(orphaned, null, { delay: "1h" });
    await sql(
      "update runs set status = 'executing', locked_by = $2, claim_id = 4711, eligible_at = clock_timestamp() where id = $1",
      [runId, worker!.id],
    );
    expect(await pawl.result(runId, { timeout: "100s" })).toBe("run");
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
    await serve([patient], { url: proxy.url, ...shortLease, reapInterval: "50ms" });
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
        // Answers when they have ended: none of them dies in the middle of what follows.
        "select pg_terminate_backend(pid, 60000) from pg_stat_activity where application_name = 'pawl' and datname = current_database()",
      );
      const { runId } = await until("a start succeeds", () => pawl.start(resilient, round).catch(() => null));
      expect(await pawl.result(runId)).toBe(round);
    }
  });
});
