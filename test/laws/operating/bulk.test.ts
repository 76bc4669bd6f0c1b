import { type BulkOperation, job, machine, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, store } = database;

const over = (id: string): Promise<BulkOperation> =>
  until(`operation ${id} is over`, async () => {
    const operation = await pawl.bulk.get(id);
    return operation.completedAt === null ? null : operation;
  });
/** Does all of it here, in this test, instead of in a worker. */
const workOff = async (): Promise<void> => {
  while ((await store.workBulk(10)).again);
};

describe("a bulk operation", () => {
  it("by an input that is null or false acts on no other run", async () => {
    const flagged = job({ name: "flagged", run: (_ctx, _input: boolean | null) => {} });
    const inputs = [true, false, null];
    const started = await pawl.startMany(
      flagged,
      inputs.map((input) => ({ input })),
    );
    for (const input of [false, null]) {
      const { id } = await pawl.runs.bulk({ where: { name: "flagged", input }, action: "cancel" });
      await workOff();
      expect(await over(id)).toMatchObject({ counted: 1, done: 1, skipped: 0 });
    }
    expect((await pawl.runs.get(started[0]!.runId)).phase).toBe("runnable");
  });

  it("by a filter that the database does not know acts on no run", async () => {
    const { runId } = await pawl.start(job({ name: "unmeant", run: () => {} }));
    const by = JSON.stringify({ who: "local", from: "library" });
    const filter = JSON.stringify({ color: "red", where: {} });
    const rows = await sql<{ id: string }>("select start_bulk('cancel', $1, '{}', 1, $2)::text as id", [
      filter,
      by,
    ]);
    await workOff();
    const operation = await over(rows[0]!.id);
    expect(operation).toMatchObject({ status: "failed", done: 0, error: expect.stringContaining('"color"') });
    expect((await pawl.runs.get(runId)).phase).toBe("runnable");
  });

  it("waits while somebody has the table of runs locked, as a migration has, and goes on afterwards", async () => {
    const locked = job({ name: "locked-table", run: () => {} });
    const { runId } = await pawl.start(locked);
    const operation = await pawl.runs.bulk({ where: { name: "locked-table" }, action: "cancel" });
    const other = await database.connect();
    await other.query("begin");
    await other.query("lock table runs in access exclusive mode");
    expect(await store.workBulk(10)).toEqual({ again: false, woke: false, batch: null });
    await other.query("rollback");
    expect(await pawl.bulk.get(operation.id)).toMatchObject({ status: "working", error: null });
    await workOff();
    expect(await over(operation.id)).toMatchObject({ status: "completed", done: 1 });
    expect((await pawl.runs.get(runId)).phase).toBe("cancelled");
  });

  it("redrives every failed run once, each as a new run, and says so per run", async () => {
    let isBroken = true;
    const done: number[] = [];
    const fragile = job({
      name: "fragile",
      maxAttempts: 1,
      run: (_ctx, input: number) => {
        if (isBroken) throw new Error("out of order");
        done.push(input);
      },
    });
    await serve([fragile]);
    const numbers = Array.from({ length: 300 }, (_, index) => index);
    const started = await pawl.startMany(
      fragile,
      numbers.map((input) => ({ input })),
    );
    const where = { name: "fragile", status: "failed" } as const;
    await until("all have failed", async () => (await pawl.runs.count(where)) === numbers.length);
    isBroken = false;
    const operation = await pawl.runs.bulk({ where, action: "rerun" });
    expect(operation).toMatchObject({
      action: "rerun",
      where,
      who: "local",
      counted: 300,
      completedAt: null,
    });
    expect(await over(operation.id)).toMatchObject({
      status: "completed",
      done: 300,
      skipped: 0,
      failed: 0,
    });
    await until("all are done", () => done.length >= numbers.length);
    expect(done.toSorted((one, other) => one - other)).toEqual(numbers);
    const results = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page = await pawl.bulk.results(operation.id, {
        limit: 70,
        ...(cursor === undefined ? {} : { cursor }),
      });
      results.push(...page.results);
      ({ cursor } = page);
    }
    expect(results.map(({ runId }) => runId)).toEqual(started.map(({ runId }) => runId));
    const reruns = await sql<{ id: string; rerun_of: string }>(
      "select id::text, rerun_of::text from runs join extras on run_id = id where rerun_of is not null",
    );
    expect(new Map(results.map(({ runId, rerunId }) => [runId, rerunId]))).toEqual(
      new Map(reruns.map((run) => [run.rerun_of, run.id])),
    );
  });

  it("of a dry run counts the runs, shows the first ten, and writes nothing", async () => {
    const idle = machine({
      name: "idle",
      steps: { start: (ctx) => ctx.awaitSignal("go", "start", ctx.state) },
    });
    const started = await pawl.startMany(
      idle,
      Array.from({ length: 12 }, () => ({ input: {} })),
    );
    const before = await sql("select count(*) from bulk_operations");
    const preview = await pawl.runs.bulk({ where: { name: "idle" }, action: "cancel", dryRun: true });
    expect(preview.count).toBe(12);
    expect(preview.runs.map(({ runId }) => runId)).toEqual(
      started
        .slice(2)
        .map(({ runId }) => runId)
        .toReversed(),
    );
    expect(await sql("select count(*) from bulk_operations")).toEqual(before);
    expect(await pawl.runs.count({ name: "idle", status: "running" })).toBe(12);
  });

  it("acts on the runs with the tags or the correlation key of its filter, and on no other", async () => {
    const idle = job({ name: "labelled", run: () => 1 });
    const start = async (options: { tags?: Record<string, string>; correlationKey?: string }) =>
      (await pawl.start(idle, undefined, { delay: "1h", queue: "nowhere", ...options })).runId;
    const tagged = await start({ tags: { plan: "pro", customer: "42" } });
    const correlated = await start({ correlationKey: "order-42" });
    const others = [await start({ tags: { plan: "free", customer: "42" } }), await start({})];
    const cancel = async (where: object) => {
      const { id } = await pawl.runs.bulk({ action: "cancel", where: { name: "labelled", ...where } });
      await workOff();
      expect(await over(id)).toMatchObject({ counted: 1, done: 1 });
    };
    await cancel({ tags: { plan: "pro", customer: "42" } });
    await cancel({ correlationKey: "order-42" });
    for (const runId of [tagged, correlated]) {
      expect(await pawl.runs.get(runId)).toMatchObject({ status: "cancelled" });
    }
    for (const runId of others) expect(await pawl.runs.get(runId)).toMatchObject({ status: "running" });
  });

  it("catches no run that starts after it", async () => {
    const late = workflow({ name: "late", run: ({ step }) => step.waitForEvent("go") });
    await pawl.startMany(
      late,
      Array.from({ length: 5 }, () => ({ input: undefined })),
    );
    const { id } = await pawl.runs.bulk({ where: { name: "late" }, action: "cancel", reason: "obsolete" });
    const { runId } = await pawl.start(late);
    await workOff();
    expect(await over(id)).toMatchObject({ done: 5 });
    expect((await pawl.runs.get(runId)).status).toBe("running");
    const { runs } = await pawl.runs.list({ name: "late", status: "cancelled" });
    expect(runs.map(({ error }) => error?.message)).toEqual(Array.from({ length: 5 }, () => "obsolete"));
  });

  it("signals waiting runs, and skips those that have ended", async () => {
    const waits = workflow({ name: "signalled", run: ({ step }) => step.waitForEvent("go") });
    await serve([waits]);
    const started = await pawl.startMany(
      waits,
      Array.from({ length: 4 }, () => ({ input: undefined })),
    );
    await pawl.runs.cancel(started[0]!.runId);
    const { id } = await pawl.runs.bulk({
      where: { name: "signalled" },
      action: "signal",
      signal: "go",
      payload: { by: "bulk" },
    });
    expect(await over(id)).toMatchObject({ done: 3, skipped: 1 });
    const outputs = await Promise.all(started.slice(1).map(({ runId }) => pawl.result(runId)));
    expect(outputs).toEqual([{ by: "bulk" }, { by: "bulk" }, { by: "bulk" }]);
    const skipped = await pawl.bulk.results(id, { outcome: "skipped" });
    expect(skipped.results).toEqual([
      { runId: started[0]!.runId, outcome: "skipped", reason: "ended", rerunId: null },
    ]);
  });

  it("pauses and resumes runs, and skips those that are not concerned", async () => {
    const quiet = workflow({ name: "quiet", run: ({ step }) => step.waitForEvent("go") });
    const started = await pawl.startMany(
      quiet,
      Array.from({ length: 3 }, () => ({ input: undefined })),
    );
    await pawl.runs.cancel(started[0]!.runId);
    const where = { name: "quiet" };
    const paused = await pawl.runs.bulk({ where, action: "pause", reason: "migration" });
    await workOff();
    expect(await over(paused.id)).toMatchObject({ done: 2, skipped: 1 });
    expect((await pawl.runs.get(started[1]!.runId)).paused).toMatchObject({
      by: "local",
      reason: "migration",
    });
    const resumed = await pawl.runs.bulk({ where, action: "resume" });
    await workOff();
    expect(await over(resumed.id)).toMatchObject({ done: 2, skipped: 1 });
    expect((await pawl.runs.get(started[1]!.runId)).paused).toBeNull();
  });

  it("deletes ended runs with journal and inbox, and no other", async () => {
    const noted = workflow({
      name: "noted",
      run: async ({ step }, input: { wait: boolean }) => {
        await step.run("note", () => 1);
        if (input.wait) await step.waitForEvent("go");
      },
    });
    await serve([noted]);
    const started = await pawl.startMany(
      noted,
      [true, false, false].map((wait) => ({ input: { wait } })),
    );
    await Promise.all(started.slice(1).map(({ runId }) => pawl.result(runId)));
    const { id } = await pawl.runs.bulk({ where: { name: "noted" }, action: "delete" });
    expect(await over(id)).toMatchObject({ done: 2, skipped: 1 });
    const { runs } = await pawl.runs.list({ name: "noted" });
    expect(runs.map(({ runId }) => runId)).toEqual([started[0]!.runId]);
    const ids = started.slice(1).map(({ runId }) => runId);
    expect(await sql("select 1 from steps where run_id = any ($1::bigint[])", [ids])).toEqual([]);
  });

  it("stops at once: runs that it has not reached stay as they are", async () => {
    const parked = machine({ name: "parked", steps: { start: (ctx) => ctx.done() } });
    await pawl.startMany(
      parked,
      Array.from({ length: 30 }, () => ({ input: {}, delay: "1h" })),
    );
    await sql("update settings set held = true");
    const { id } = await pawl.runs.bulk({ where: { name: "parked" }, action: "cancel" });
    const stopped = await pawl.bulk.stop(id);
    await sql("update settings set held = false");
    expect(stopped).toMatchObject({ status: "stopped", done: 0, completedAt: expect.any(Date) });
    await workOff();
    expect(await pawl.bulk.get(id)).toEqual(stopped);
    expect(await pawl.bulk.stop(id)).toEqual(stopped);
    expect(await pawl.runs.count({ name: "parked", status: "running" })).toBe(30);
  });

  it("tries a locked run again after the others", async () => {
    const locked = machine({ name: "locked", steps: { start: (ctx) => ctx.done() } });
    const started = await pawl.startMany(
      locked,
      Array.from({ length: 3 }, () => ({ input: {}, delay: "1h" })),
    );
    const other = await database.connect();
    await other.query("begin");
    await other.query("select 1 from runs where id = $1 for update", [started[0]!.runId]);
    const { id } = await pawl.runs.bulk({ where: { name: "locked" }, action: "cancel" });
    await until("the others are cancelled", async () => (await pawl.bulk.get(id)).done === 2);
    await other.query("rollback");
    expect(await over(id)).toMatchObject({ done: 3 });
  });
});

describe("several workers on one bulk operation", () => {
  it("act on each run once, also if some die in the middle of a batch", async () => {
    const dull = job({ name: "dull", run: () => 0 });
    await pawl.startMany(
      dull,
      Array.from({ length: 400 }, () => ({ input: undefined, delay: "1h" })),
    );
    await sql(`update runs set status = 'failed', completed_at = clock_timestamp(), expires_at = clock_timestamp() + retention,
      error = '{"name": "Error", "message": "out of order"}' where name = 'dull'`);
    const { id } = await pawl.runs.bulk({ where: { name: "dull", status: "failed" }, action: "rerun" });
    const mortal = await database.connect();
    const die = async (): Promise<void> => {
      await mortal.query("begin");
      await mortal.query("select * from work_bulk(20)");
      await mortal.query("rollback");
    };
    const work = async (): Promise<void> => {
      while ((await pawl.bulk.get(id)).completedAt === null) await store.workBulk(20);
    };
    const dying = async (): Promise<void> => {
      while ((await pawl.bulk.get(id)).completedAt === null) await die();
    };
    await Promise.all([work(), work(), work(), dying()]);
    expect(await pawl.bulk.get(id)).toMatchObject({ status: "completed", done: 400, skipped: 0, failed: 0 });
    const [row] = await sql(
      `select count(*)::int as runs, count(distinct rerun_of)::int as olds,
         (select count(*)::int from bulk_results b join extras n on n.run_id = b.rerun_id and n.rerun_of = b.run_id
          where b.operation_id = $1) as recorded
       from runs r join extras x on x.run_id = r.id where r.name = 'dull' and x.rerun_of is not null`,
      [id],
    );
    expect(row).toEqual({ runs: 400, olds: 400, recorded: 400 });
  });
});

describe("a bulk operation is refused", () => {
  const bulk = (options: object): Promise<unknown> => Reflect.apply(pawl.runs.bulk, null, [options]);

  it("without a filter, unless all is true", async () => {
    await expect(bulk({ action: "cancel" })).rejects.toThrow(/needs a filter.*all: true/);
    await expect(bulk({ action: "cancel", where: {} })).rejects.toMatchObject({ code: "InvalidOption" });
    expect(await bulk({ action: "cancel", all: true, dryRun: true })).toMatchObject({
      count: expect.any(Number),
    });
  });

  it("with an unknown action, filter or option, or an option of another action", async () => {
    const where = { name: "idle" };
    await expect(bulk({ where, action: "rerum" })).rejects.toThrow(/did you mean "rerun"/);
    await expect(bulk({ where: { nam: "idle" }, action: "rerun" })).rejects.toThrow(/did you mean "name"/);
    await expect(bulk({ where, action: "delete", cascade: true })).rejects.toThrow(/action "delete"/);
    await expect(bulk({ where, action: "signal" })).rejects.toThrow(/the name of a signal/);
    await expect(bulk({ where, action: "cancel", dryRun: "yes" })).rejects.toThrow(
      /dryRun must be true or false/,
    );
    await expect(pawl.bulk.get("999999")).rejects.toMatchObject({ code: "OperationNotFound" });
    await expect(pawl.bulk.stop("one")).rejects.toMatchObject({ code: "OperationNotFound" });
    await expect(pawl.bulk.results("999999")).rejects.toMatchObject({ code: "OperationNotFound" });
  });

  it("operations are listed newest first, page by page", async () => {
    const first = await pawl.bulk.list({ limit: 2 });
    const second = await pawl.bulk.list({ limit: 2, cursor: first.cursor! });
    const ids = [...first.operations, ...second.operations].map(({ id }) => Number(id));
    expect(ids).toEqual(ids.toSorted((one, other) => other - one));
    expect(new Set(ids).size).toBe(4);
  });
});
