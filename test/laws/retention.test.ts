import { child, job, machine } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { gate } from "../support/gate.js";
import { claimOne, commit, done, register, spawn, start } from "../support/store.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const engine = testEngine(database);
const { pawl } = engine;
// No lease is to lapse here, however slow the machine.
const serve: typeof engine.serve = (definitions, options) =>
  engine.serve(definitions, { lease: "1m", ...options });
const { sql, store } = database;
const hour = 3_600_000;
const day = 24 * hour;

const quick = job({ name: "quick", retention: "2h", run: () => "done" });
const plain = job({ name: "plain", run: () => "done" });
await serve([quick, plain], { sweepInterval: false });

/** How long a run is kept, in milliseconds from its end. */
async function keptMs(runId: string): Promise<number> {
  const { expiresAt, completedAt } = await pawl.runs.get(runId);
  return expiresAt!.getTime() - completedAt!.getTime();
}

const existing = async (...runIds: string[]): Promise<string[]> => {
  const rows = await sql<{ id: string }>("select id::text from runs where id = any ($1) order by id", [
    runIds,
  ]);
  return rows.map(({ id }) => id);
};

const expire = (...runIds: string[]) =>
  sql("update runs set expires_at = clock_timestamp() - interval '1 s' where id = any ($1)", [runIds]);

async function withCeiling<T>(ceiling: string, then: () => Promise<T>): Promise<T> {
  await sql("update settings set retention_ceiling = $1::interval", [ceiling]);
  try {
    return await then();
  } finally {
    await sql("update settings set retention_ceiling = '365 days'");
  }
}

async function ended(...options: Parameters<typeof pawl.start>[2][]): Promise<string[]> {
  const started = await Promise.all(options.map((option) => pawl.start(plain, null, option)));
  for (const { runId } of started) await pawl.result(runId);
  return started.map(({ runId }) => runId);
}

describe("a run is kept from its end", () => {
  it("for 30 days, for what its definition says, or for what its start says", async () => {
    const [usual, zero] = await ended({}, { retention: 0 });
    expect(await keptMs(usual!)).toBe(30 * day);
    expect(await keptMs(zero!)).toBe(0);
    const defined = await pawl.start(quick, null);
    const given = await pawl.start(quick, null, { retention: "5m" });
    for (const { runId } of [defined, given]) await pawl.result(runId);
    expect([await keptMs(defined.runId), await keptMs(given.runId)]).toEqual([2 * hour, 300_000]);
  });

  it("whether it is done, failed or cancelled, and not before it has ended", async () => {
    const stops = machine({ name: "stops", retention: "3h", steps: { start: (ctx) => ctx.stop("no") } });
    await serve([stops], { sweepInterval: false });
    const failed = await pawl.start(stops, {});
    await pawl.result(failed.runId).catch(() => {});
    const cancelled = await pawl.start(quick, null, { delay: "1h" });
    expect((await pawl.runs.get(cancelled.runId)).expiresAt).toBe(null);
    await pawl.runs.cancel(cancelled.runId);
    expect([await keptMs(failed.runId), await keptMs(cancelled.runId)]).toEqual([3 * hour, 2 * hour]);
  });

  it("as it was at its start, whatever the definition says later", async () => {
    const { runId } = await pawl.start(job({ name: "later", retention: "1h", run: () => 0 }), null);
    await serve([job({ name: "later", retention: "9h", run: () => 0 })], { sweepInterval: false });
    await pawl.result(runId);
    expect(await keptMs(runId)).toBe(hour);
    const byName = await pawl.start("later", null);
    await pawl.result(byName.runId);
    expect(await keptMs(byName.runId)).toBe(9 * hour);
  });

  it("never beyond the ceiling, which counts at the start", async () => {
    const runIds = await withCeiling("1 day", async () => {
      const [usual, given, brief] = await ended({}, { retention: "400d" }, { retention: "1h" });
      const cancelled = await pawl.start("nobody", null, { retention: "400d" });
      await pawl.runs.cancel(cancelled.runId);
      return [usual!, given!, brief!, cancelled.runId];
    });
    expect(await Promise.all(runIds.map(keptMs))).toEqual([day, day, hour, day]);
    const [later] = await ended({ retention: "400d" });
    expect(await keptMs(later!)).toBe(365 * day);
  });

  it("never beyond the ceiling when it was started by name before any worker registered it", async () => {
    const runIds = await withCeiling("1 day", async () => {
      const options = [{}, { retention: "400d" }, { retention: "2h" }] as const;
      const early = await Promise.all(options.map((option) => pawl.start("early", null, option)));
      const dropped = await pawl.start("early", null);
      await pawl.runs.cancel(dropped.runId);
      const definition = job({ name: "early", retention: "90d", run: () => 0 });
      await serve([definition], { sweepInterval: false });
      for (const { runId } of early) await pawl.result(runId);
      return [...early.map(({ runId }) => runId), dropped.runId];
    });
    expect(await Promise.all(runIds.map(keptMs))).toEqual([day, day, 2 * hour, day]);
  });

  it("a child for what its own definition or options say", async () => {
    const parent = machine({
      name: "parent",
      steps: {
        start: (ctx) =>
          ctx.spawn("gather", [child(quick), child(quick, undefined, { retention: "4h" })], ctx.state),
        gather: (ctx) => ctx.done(ctx.children.map(({ runId }) => runId)),
      },
    });
    await serve([parent], { sweepInterval: false });
    const children = await pawl.result((await pawl.start(parent, {})).runId);
    expect(await Promise.all(children.map(keptMs))).toEqual([2 * hour, 4 * hour]);
  });
});

describe("a sweep", () => {
  it("deletes terminal runs past their time with inbox and journal; never a live run, whatever its expiry says", async () => {
    const [past, present] = await ended({}, {});
    const live = await pawl.start(plain, null, { delay: "1h" });
    for (const runId of [past, live.runId]) {
      await sql("insert into signals values ($1, 1, 's', null, 'd', clock_timestamp(), clock_timestamp())", [
        runId,
      ]);
      await sql(
        "insert into steps (run_id, name, kind, seq, output, started_at) values ($1, 's', 'run', 1, '1', clock_timestamp())",
        [runId],
      );
    }
    await expire(past!, live.runId);
    expect((await store.sweep(1_000)).swept).toBeGreaterThan(0);
    expect(await existing(past!, present!, live.runId)).toEqual([present, live.runId]);
    const left = { rows: [{ run_id: live.runId }] };
    expect(await sql("select run_id::text from signals")).toEqual(left.rows);
    expect(await sql("select run_id::text from steps")).toEqual(left.rows);
    await expect(pawl.runs.get(past!)).rejects.toMatchObject({ code: "RunNotFound" });
    await expect(pawl.result(past!)).rejects.toMatchObject({ code: "RunNotFound" });
  });

  it("deletes no more than its limit in a call, the longest expired first", async () => {
    while ((await store.sweep(1_000)).swept > 0);
    const runIds = await ended({}, {}, {}, {}, {});
    for (const [index, runId] of runIds.entries()) {
      await sql("update runs set expires_at = clock_timestamp() - $2 * interval '1 s' where id = $1", [
        runId,
        index + 1,
      ]);
    }
    expect((await store.sweep(2)).swept).toBe(2);
    expect(await existing(...runIds)).toEqual(runIds.slice(0, 3));
    expect((await store.sweep(2)).swept).toBe(2);
    expect((await store.sweep(2)).swept).toBe(1);
    expect((await store.sweep(2)).swept).toBe(0);
  });

  it("frees the keys of what it deletes", async () => {
    const key = { idempotencyKey: "once" };
    const [first] = await ended(key);
    expect(await pawl.start(plain, null, key)).toMatchObject({ runId: first, created: false });
    await expire(first!);
    await store.sweep(1_000);
    expect(await pawl.start(plain, null, key)).toMatchObject({ created: true });
  });

  it("waits with a cancelled run until its worker has let it go", async () => {
    const open = gate();
    const held = job({ name: "held", retention: 0, run: open.pass });
    await serve([held], { sweepInterval: false, drainTimeout: "1h" });
    const { runId } = await pawl.start(held);
    await until("it runs", open.entered);
    await pawl.runs.cancel(runId);
    await store.sweep(1_000);
    expect(await existing(runId)).toEqual([runId]);
    open.open();
    await until("it is swept", async () => (await store.sweep(1_000)).swept > 0);
    expect(await existing(runId)).toEqual([]);
  });

  it("waits with a child until its parent has gone on from the step that sees it", async () => {
    await register(database, "worker");
    const look = { queue: "family", names: ["counter"] };
    await start(database, { queue: "family" });
    const parent = await claimOne(database, look);
    await commit(
      database,
      parent,
      spawn({ queue: "family", retentionMs: 0 }, { queue: "family", retentionMs: 0 }),
    );
    const runIds = [];
    for (let n = 0; n < 2; n++) {
      const one = await claimOne(database, look);
      runIds.push(one.runId);
      await commit(database, one, done());
      // While the parent waits for the other, and while it could be claimed.
      await store.sweep(1_000);
      expect(await existing(...runIds)).toEqual(runIds);
    }
    const woken = await claimOne(database, look);
    await store.sweep(1_000);
    expect(await existing(...runIds)).toEqual(runIds);
    await commit(database, woken, { kind: "retry", step: null, state: null, delayMs: 0, error: null });
    await store.sweep(1_000);
    expect(await existing(...runIds)).toEqual(runIds);
    const again = await claimOne(database, look);
    await commit(database, again, { kind: "keep", step: "on", state: null, consumed: [] });
    expect((await store.sweep(1_000)).swept).toBe(2);
    expect(await existing(...runIds, parent.runId)).toEqual([parent.runId]);
  });

  it("waits for no parent that was cancelled, nor for one that was swept", async () => {
    const look = { queue: "orphans", names: ["counter"] };
    for (const isSwept of [false, true]) {
      await start(database, { queue: "orphans", retentionMs: isSwept ? 0 : day });
      const parent = await claimOne(database, look);
      await commit(database, parent, spawn({ queue: "orphans", retentionMs: 0 }, { queue: "orphans" }));
      const orphan = await claimOne(database, look);
      await commit(database, orphan, done());
      await store.cancel(parent.runId, { reason: null, cascade: true });
      if (isSwept) await sql("update runs set expires_at = 'infinity' where id = $1", [orphan.runId]);
      await store.sweep(1_000);
      expect(await existing(parent.runId)).toEqual(isSwept ? [] : [parent.runId]);
      if (isSwept) await expire(orphan.runId);
      await store.sweep(1_000);
      expect(await existing(orphan.runId)).toEqual([]);
    }
  });
});

describe("sweepInterval", () => {
  it("false never sweeps; a worker that has one sweeps what has expired, and only that", async () => {
    while ((await store.sweep(1_000)).swept > 0);
    const [gone, kept] = await ended({ retention: 1 }, { retention: "1h" });
    // Every worker so far was told not to sweep: what has expired is still there after many rounds of repairs.
    for (let n = 0; n < 20; n++) await ended({});
    expect(await existing(gone!)).toEqual([gone]);
    await serve([job({ name: "broom", run: () => 0 })], { sweepInterval: 20 });
    await until("it is swept", async () => (await existing(gone!)).length === 0);
    expect(await existing(kept!)).toEqual([kept]);
    await expect(pawl.result(gone!)).rejects.toMatchObject({ code: "RunNotFound" });
  });
});
