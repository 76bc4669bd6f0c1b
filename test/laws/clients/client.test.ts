import { InvalidOption, job, KeyConflict, machine, RunFailed, RunNotFound, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const echo = job({ name: "echo", input: type<{ n: number }>(), run: (_ctx, input) => input.n });
const parked = job({ name: "parked", queue: "nobody", run: () => 0 });
await serve([echo]);

const countRuns = async (): Promise<number> =>
  Number((await sql<{ n: string }>("select count(*) as n from runs"))[0]!.n);

describe("start", () => {
  it("answers with the id, that it was created, and the status", async () => {
    const started = await pawl.start(echo, { n: 1 });
    expect(started).toEqual({
      runId: expect.stringMatching(/^\d+$/) as string,
      created: true,
      status: "running",
    });
    expect(await pawl.result(started.runId)).toBe(1);
  });

  it("an id keeps its last six bits for the number of a shard", async () => {
    const { runId } = await pawl.start(parked, null);
    expect(BigInt(runId) & 63n).toBe(0n);
  });

  it("a duplicate starts nothing and answers the holder", async () => {
    const first = await pawl.start(parked, null, { uniqueKey: "one" });
    expect(await pawl.start(parked, null, { uniqueKey: "one" })).toEqual({ ...first, created: false });
    const bytes = await pawl.start(parked, null, { uniqueKey: new Uint8Array([0, 255, 1]) });
    expect(await pawl.start(parked, null, { uniqueKey: new Uint8Array([0, 255, 1]) })).toEqual({
      ...bytes,
      created: false,
    });
  });

  it("an idempotency key answers the same run for ever, also when it has ended", async () => {
    const first = await pawl.start(echo, { n: 5 }, { idempotencyKey: "once" });
    await pawl.result(first.runId);
    expect(await pawl.start(echo, { n: 6 }, { idempotencyKey: "once" })).toEqual({
      runId: first.runId,
      created: false,
      status: "completed",
    });
  });

  it("two keys of different runs are a KeyConflict, which costs no other start in the same call", async () => {
    await pawl.start(parked, null, { uniqueKey: "k1" });
    await pawl.start(parked, null, { idempotencyKey: "k2" });
    const [conflict, fine] = await Promise.allSettled([
      pawl.start(parked, null, { uniqueKey: "k1", idempotencyKey: "k2" }),
      pawl.start(echo, { n: 2 }),
    ]);
    expect(conflict).toMatchObject({ status: "rejected", reason: expect.any(KeyConflict) as KeyConflict });
    expect(fine).toMatchObject({ status: "fulfilled", value: { created: true } });
  });

  it("a key that an open transaction holds delays its own start and no other", async () => {
    const user = await database.connect();
    await user.query("begin");
    await user.query(
      `select start_runs('{"(parked,1,job,nobody,0,,,,1000,held,,,,,,,,,,,)"}', array['1'], true, true, null, null)`,
    );
    let isHeld = true;
    const held = pawl.start(parked, null, { idempotencyKey: "held" }).finally(() => (isHeld = false));
    const others = await Promise.all([
      pawl.start(echo, { n: 1 }),
      pawl.start(parked, null, { idempotencyKey: "free" }),
    ]);
    expect(others.map(({ created }) => created)).toEqual([true, true]);
    expect(isHeld).toBe(true);
    await user.query("commit");
    expect(await held).toMatchObject({ created: false });
  });

  it("a scope that tells runnable and executing apart holds although a slot is free", async () => {
    const scoped = job({ name: "scoped", run: () => 0 });
    await serve([scoped]);
    const waiting = { uniqueKey: "scoped", uniqueScope: ["runnable"] as const };
    const first = await pawl.start(scoped, null, { ...waiting, delay: "1h" });
    expect(await pawl.start(scoped, null, waiting)).toEqual({ ...first, created: false });
  });

  it("a scope of ended phases answers the run that ended in it", async () => {
    const once = job({ name: "once", run: () => 7 });
    await serve([once]);
    const scope = { uniqueKey: "once", uniqueScope: ["done"] as const };
    const first = await pawl.start(once, null, scope);
    await pawl.result(first.runId);
    const again = { runId: first.runId, created: false, status: "completed" };
    expect(await pawl.start(once, null, scope)).toEqual(again);
    expect(await pawl.startMany(once, [{ input: null, ...scope }, { input: null }])).toMatchObject([
      again,
      { created: true },
    ]);
  });

  it("startMany dedups, answers per item in order, and starts none of them when keys conflict", async () => {
    const items = [{ uniqueKey: "m1" }, { uniqueKey: "m2" }, { uniqueKey: "m1" }, {}];
    const started = await pawl.startMany(
      parked,
      items.map((item) => ({ input: null, ...item })),
    );
    expect(started.map(({ created }) => created)).toEqual([true, true, false, true]);
    expect(started[2]!.runId).toBe(started[0]!.runId);
    const before = await countRuns();
    const conflicting = [{ input: null }, { input: null, uniqueKey: "k1", idempotencyKey: "k2" }];
    await expect(pawl.startMany(parked, conflicting)).rejects.toBeInstanceOf(KeyConflict);
    expect(await countRuns()).toBe(before);
    expect(await pawl.startMany(parked, [])).toEqual([]);
    const holes: { input: null }[] = [];
    holes.length = 1;
    await expect(pawl.startMany(parked, holes)).rejects.toBeInstanceOf(InvalidOption);
  });

  it("a thousand starts at once all begin, and end", async () => {
    const started = await Promise.all(Array.from({ length: 1_000 }, (_, n) => pawl.start(echo, { n })));
    const results = await Promise.all(started.map(({ runId }) => pawl.result(runId)));
    expect(results).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
  });

  it("by name takes the version with a live worker, its queue and its defaults", async () => {
    const v1 = job({ name: "versioned", version: 1, queue: "v1", priority: 4, run: () => "one" });
    const v2 = job({ name: "versioned", version: 2, queue: "v2", run: () => "two" });
    const second = await serve([v2]);
    await second.stop();
    await serve([v1]);
    const { runId } = await pawl.start("versioned", {});
    expect(await pawl.result(runId)).toBe("one");
    expect(await pawl.runs.get(runId)).toMatchObject({ version: 1, queue: "v1", priority: 4, kind: "job" });
  });

  it("by name takes the version that is given, and the rest from its registration", async () => {
    const old = job({ name: "dated", version: 1, queue: "old", priority: 2, run: () => "one" });
    const young = job({ name: "dated", version: 2, queue: "young", run: () => "two" });
    await serve([old, young]);
    const { runId } = await pawl.start("dated", {}, { version: 1 });
    expect(await pawl.result(runId)).toBe("one");
    expect(await pawl.runs.get(runId)).toMatchObject({ version: 1, queue: "old", priority: 2, kind: "job" });
    const later = await pawl.start("dated", {}, { version: 3 });
    expect(await pawl.runs.get(later.runId)).toMatchObject({ version: 3, kind: null, status: "running" });
    await serve([job({ name: "dated", version: 3, queue: "youngest", run: () => "three" })]);
    expect(await pawl.result(later.runId)).toBe("three");
    expect(await pawl.runs.get(later.runId)).toMatchObject({ queue: "youngest", kind: "job" });
    await expect(pawl.start(old, {}, { version: 2 })).rejects.toThrow("version is for starts by name");
    await expect(pawl.start("dated", {}, { version: 0 })).rejects.toThrow("version must be a whole number");
  });

  it("by a name that nobody has registered waits for the first worker that does, and goes to its queue", async () => {
    const { runId } = await pawl.start("unheard-of", { n: 7 });
    expect(await pawl.runs.get(runId)).toMatchObject({
      version: 1,
      queue: "default",
      kind: null,
      status: "running",
    });
    await serve([job({ name: "unheard-of", queue: "quiet", run: (_ctx, input: { n: number }) => input.n })]);
    expect(await pawl.result(runId)).toBe(7);
    expect(await pawl.runs.get(runId)).toMatchObject({ queue: "quiet", kind: "job" });
    const given = await pawl.start("unheard-of-2", { n: 1 }, { priority: 7 });
    await serve([
      job({ name: "unheard-of-2", queue: "quiet-2", priority: 3, retention: "2d", run: () => 0 }),
    ]);
    await pawl.result(given.runId);
    const placed = await pawl.runs.get(given.runId);
    expect(placed.priority).toBe(7);
    expect(placed.expiresAt!.getTime() - placed.completedAt!.getTime()).toBe(2 * 86_400_000);
  });

  it("a queue, priority, delay and retention of the start win over the definition's", async () => {
    const at = new Date(Date.now() + 3_600_000);
    const { runId } = await pawl.start(echo, { n: 1 }, { queue: "other", priority: -5, at });
    expect(await pawl.runs.get(runId)).toMatchObject({ queue: "other", priority: -5, eligibleAt: at });
    const later = await pawl.runs.get((await pawl.start(echo, { n: 1 }, { delay: "1h" })).runId);
    expect(later.eligibleAt!.getTime() - later.startedAt.getTime()).toBe(3_600_000);
    const brief = await pawl.start(echo, { n: 1 }, { retention: "2h" });
    await pawl.result(brief.runId);
    const { expiresAt, completedAt } = await pawl.runs.get(brief.runId);
    expect(expiresAt!.getTime() - completedAt!.getTime()).toBe(7_200_000);
  });
});

describe("versions", () => {
  it("run side by side, and a run finishes on the version it was started with", async () => {
    const versions = [1, 2].map((version) =>
      job({ name: "side", version, run: (ctx) => [version, ctx.version] }),
    );
    await serve(versions);
    const started = await Promise.all(versions.map((version) => pawl.start(version, null)));
    expect(await Promise.all(started.map(({ runId }) => pawl.result(runId)))).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });

  it("a run whose definition no live worker serves stays runnable", async () => {
    const { runId } = await pawl.start(job({ name: "unserved", version: 9, run: () => 0 }), null);
    const sentinel = await pawl.start(echo, { n: 0 });
    await pawl.result(sentinel.runId);
    expect((await pawl.runs.get(runId)).phase).toBe("runnable");
  });

  it("one name and version cannot become another kind", async () => {
    await serve([job({ name: "kinds", run: () => 0 })]);
    const other = machine({ name: "kinds", steps: { start: (ctx) => ctx.done() } });
    await expect(serve([other])).rejects.toMatchObject({
      code: "InvalidOption",
      message: expect.stringContaining("new version") as string,
    });
  });
});

describe("result", () => {
  it("times out with ResultTimeout and the run goes on", async () => {
    const { runId } = await pawl.start(parked, null);
    await expect(pawl.result(runId, { timeout: "20ms" })).rejects.toMatchObject({ code: "ResultTimeout" });
    expect((await pawl.runs.get(runId)).status).toBe("running");
  });

  it("of a run that has ended is there at once, however short the timeout", async () => {
    const { runId } = await pawl.start(echo, { n: 4 });
    await pawl.result(runId);
    expect(await pawl.result(runId, { timeout: 0 })).toBe(4);
  });

  it("throws RunCancelled for a cancelled run", async () => {
    const { runId } = await pawl.start(parked, null);
    await sql(
      `update runs set status = 'cancelled', completed_at = clock_timestamp(), error = '{"name":"Cancelled","message":"not needed"}' where id = $1`,
      [runId],
    );
    await expect(pawl.result(runId)).rejects.toMatchObject({ code: "RunCancelled", reason: "not needed" });
  });

  it("throws RunNotFound for an id that no run has, of whatever shape", async () => {
    for (const runId of ["999999999999", "not a number", "-1", "0", "99999999999999999999"]) {
      await expect(pawl.result(runId)).rejects.toBeInstanceOf(RunNotFound);
      await expect(pawl.runs.get(runId)).rejects.toBeInstanceOf(RunNotFound);
    }
  });

  it("of a run that ends in another process is found by polling", async () => {
    const { runId } = await pawl.start(parked, null);
    const waiting = pawl.result(runId);
    await sql(
      `update runs set status = 'done', completed_at = clock_timestamp(), result = '"elsewhere"' where id = $1`,
      [runId],
    );
    expect(await waiting).toBe("elsewhere");
  });

  it("of a run that failed carries the recorded error", async () => {
    const failing = job({
      name: "failing",
      maxAttempts: 1,
      run: () => {
        throw new RangeError("too far");
      },
    });
    await serve([failing]);
    const error = await pawl
      .result((await pawl.start(failing, null)).runId)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RunFailed);
    expect(error).toMatchObject({ error: { name: "RangeError", message: "too far" } });
  });
});

describe("runs.list", () => {
  it("pages newest first, stable under inserts, with an opaque cursor", async () => {
    const listed = job({ name: "listed", queue: "nobody", run: () => 0 });
    const started = await pawl.startMany(
      listed,
      Array.from({ length: 7 }, () => ({ input: null })),
    );
    const ids = started.map(({ runId }) => runId).toReversed();
    const first = await pawl.runs.list({ name: "listed", limit: 3 });
    await pawl.start(listed, null);
    const second = await pawl.runs.list({ name: "listed", limit: 3, cursor: first.cursor! });
    const third = await pawl.runs.list({ name: "listed", limit: 3, cursor: second.cursor! });
    const pages = [first, second, third].map(({ runs }) => runs.map((run) => run.runId));
    expect(pages.flat()).toEqual(ids);
    expect(third.cursor).toBeNull();
  });

  it("filters by status, phase, version, queue and time", async () => {
    const filtered = job({ name: "filtered", queue: "filter", run: () => 0 });
    const { runId } = await pawl.start(filtered, null);
    const found = async (options: object): Promise<number> =>
      (await pawl.runs.list({ name: "filtered", ...options })).runs.length;
    expect(await found({ status: "running" })).toBe(1);
    expect(await found({ status: "completed" })).toBe(0);
    expect(await found({ phase: "runnable" })).toBe(1);
    expect(await found({ status: "completed", phase: "runnable" })).toBe(0);
    expect(await found({ version: 2 })).toBe(0);
    expect(await found({ queue: "filter" })).toBe(1);
    const { startedAt } = await pawl.runs.get(runId);
    expect(await found({ since: startedAt })).toBe(1);
    expect(await found({ until: startedAt })).toBe(0);
  });
});
