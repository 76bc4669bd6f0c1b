import { connect, job, serve } from "pawl";
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { until } from "../../support/until.js";
import { fragile, leaving, linear, slow, suicidal } from "../programs/definitions.js";
import { percentile, recoveriesMs, watchLag, watchRecoveries } from "../arena/figures.js";
import { type Fleet, makeFleet, makeLedger } from "../arena/fleet.js";

const database = await testDatabase();
const { sql } = database;
const ledger = await makeLedger();
const pawl = connect(database.url);
afterAll(() => pawl.close());

/** Bounds the time on a machine so slow that workers die faster than they boot. */
const maxKills = 60;

const everyMs = 300;
/** That of the workers, and what recovery may take beyond it. */
const leaseMs = 2_000;
const recoveryMs = 1_000;

let fleet: Fleet;
beforeEach(() => {
  fleet = makeFleet(database.url, ledger.url);
  fleet.replaceTheDead();
});
afterEach(() => fleet.stop());

describe("workers that die", () => {
  it("2,000 runs complete with a worker killed by -9 every 300 ms: none lost, stuck or committed by a stale worker", async () => {
    // One that is not killed sees to the dead, also while all others boot.
    const survivor = serve([job({ name: "survive", queue: "survivor", run: () => null })], {
      url: database.url,
      lease: "2s",
      heartbeat: "400ms",
      reapInterval: "200ms",
      logger: silent,
    });
    onTestFinished(() => survivor.stop());
    await survivor.ready;
    await fleet.grow(3);
    const lag = watchLag();
    const recoveries = watchRecoveries(sql, fleet.kills);
    const started = await pawl.startMany(
      linear,
      Array.from({ length: 2_000 }, () => ({ input: { path: [] } })),
    );
    const ids = started.map(({ runId }) => runId);
    let kills = 0;
    const killing = setInterval(() => {
      if (kills < maxKills && fleet.killOne()) kills++;
    }, everyMs);
    const unfinished = async (): Promise<number> => {
      const [row] = await sql<{ n: string }>("select count(*) as n from runs where completed_at is null");
      return Number(row!.n);
    };
    // Killing goes on until nearly all are done; the stragglers wait out their crash delays in peace.
    await until("nearly all have ended", async () => (await unfinished()) < 100, 300_000);
    clearInterval(killing);
    await until("all have ended", async () => (await unfinished()) === 0, 120_000);
    await fleet.stop();
    const lagMs = lag();
    const freed = await recoveries();
    expect(kills).toBeGreaterThan(20);
    const again = await recoveriesMs(ledger.sql, fleet.kills);
    const p99 = percentile(freed, 99);
    // When they are entered again depends on who is there to execute them: here workers die about as fast as they boot.
    console.info(
      `${kills} workers killed: their runs free again after p50 ${percentile(freed, 50)} ms, p99 ${p99} ms (bar ${leaseMs + recoveryMs} ms; ` +
        `the machine was late by up to ${Math.round(lagMs)} ms); ${again.length} steps entered again after p50 ` +
        `${Math.round(percentile(again, 50))} ms, p99 ${Math.round(percentile(again, 99))} ms, a worker boots in ${Math.round(percentile(fleet.bootsMs, 50))} ms`,
    );
    expect(freed.length).toBeGreaterThan(20);
    expect(p99).toBeLessThan(leaseMs + recoveryMs + 10 * lagMs);

    const path = ["start", "second", "third", "fourth", "last"];
    const wrong = await sql(
      "select id, status, result, error from runs where status <> 'done' or result <> $1",
      [JSON.stringify(path)],
    );
    expect(wrong).toEqual([]);
    expect(await sql("select count(*)::int as n from runs where id = any ($1)", [ids])).toEqual([
      { n: 2_000 },
    ]);
    expect(await sql("select from runs where locked_by is not null")).toEqual([]);
    // every step ran at least once, and the crashes made some run again
    const [steps] = await ledger.sql<{ different: number; all: number }>(
      "select count(distinct (run_id, step))::int as different, count(*)::int as all from public.ledger",
    );
    expect(steps!.different).toBe(10_000);
    expect(steps!.all).toBeGreaterThan(10_000);
  }, 480_000);

  it("a crash re-runs the step with attempt + 1 and does not call handle", async () => {
    await fleet.grow(2);
    const { runId } = await pawl.start(suicidal, { times: 1 });
    expect(await pawl.result(runId, { timeout: "60s" })).toBe(1);
    const rows = await ledger.sql("select step, attempt from public.ledger where run_id = $1 order by id", [
      runId,
    ]);
    expect(rows).toEqual([
      { step: "deadly", attempt: 0 },
      { step: "deadly", attempt: 1 },
    ]);
  }, 120_000);

  it("workers paused for longer than their lease, then continued, commit nothing over their successors", async () => {
    await fleet.grow(2);
    const started = await pawl.startMany(
      slow,
      Array.from({ length: 20 }, () => ({ input: {} })),
    );
    const ids = started.map(({ runId }) => runId);
    const tellers = await until("all have begun", async () => {
      const rows = await ledger.sql<{ run_id: string; pid: number }>(
        "select run_id, pid from public.ledger where run_id = any ($1) and attempt = 0",
        [ids],
      );
      return rows.length === ids.length ? rows : null;
    });
    const zombie = tellers[0]!.pid;
    process.kill(zombie, "SIGSTOP");
    const overtaken = tellers.filter(({ pid }) => pid === zombie).map(({ run_id }) => run_id);
    const results = await Promise.all(ids.map((runId) => pawl.result(runId, { timeout: "60s" })));
    process.kill(zombie, "SIGCONT");
    // The zombie finishes its steps, tries to commit them, and then serves again under a new id.
    await until(
      "the zombie serves again",
      async () => {
        const more = await pawl.startMany(
          slow,
          Array.from({ length: 60 }, () => ({ input: {} })),
        );
        const outputs = await Promise.all(more.map(({ runId }) => pawl.result(runId, { timeout: "60s" })));
        return outputs.some(({ pid }) => pid === zombie);
      },
      60_000,
    );
    expect(overtaken.length).toBeGreaterThan(0);
    for (const runId of overtaken) {
      const index = ids.indexOf(runId);
      expect(results[index]!.pid).not.toBe(zombie);
      expect(await pawl.runs.get(runId)).toMatchObject({ output: results[index], attempt: 1 });
    }
  }, 150_000);

  it("maxCrashes ends a run that kills every worker: TooManyCrashes", async () => {
    await fleet.grow(2);
    const { runId } = await pawl.start(fragile, {});
    await expect(pawl.result(runId, { timeout: "90s" })).rejects.toMatchObject({
      error: { code: "TooManyCrashes" },
    });
    const rows = await ledger.sql("select from public.ledger where run_id = $1", [runId]);
    expect(rows).toHaveLength(2);
  }, 150_000);

  it.each(["exit", "rejection"] as const)(
    "a job that ends its process (%s) runs again elsewhere",
    async (how) => {
      await fleet.grow(2);
      const { runId } = await pawl.start(leaving, { how });
      expect(await pawl.result(runId, { timeout: "60s" })).toBe(1);
      expect(fleet.deaths()).toBe(1);
    },
    120_000,
  );
});
