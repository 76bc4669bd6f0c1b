import { type Child, child, type ChildRun, job, machine, type PawlError } from "pawl";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const engine = testEngine(database);
const { pawl } = engine;
// No lease is to lapse here, however slow the machine.
const serve: typeof engine.serve = (definitions, options) =>
  engine.serve(definitions, { lease: "1m", ...options });
const { sql } = database;

const echo = job({ name: "echo", run: (_ctx, n: number) => n });
await serve([echo]);

interface Seen {
  children: readonly ChildRun[][];
  errors: PawlError[];
}

let made = 0;

/** Starts a parent of these children and tells what it saw: its children, and the errors that handle got. */
async function spawning(children: () => Child[]): Promise<{ runId: string; seen: Seen }> {
  const seen = { children: [] as ChildRun[][], errors: [] as PawlError[] };
  const parent = machine({
    name: `parent-${++made}`,
    steps: {
      start: (ctx) => ctx.spawn("gather", children(), ctx.state),
      gather: (ctx) => {
        seen.children.push([...ctx.children]);
        return ctx.done(ctx.children.map(({ output }) => output));
      },
    },
    handle: (error, ctx) => {
      seen.errors.push(error as PawlError);
      return ctx.stop(error);
    },
  });
  await serve([parent]);
  const { runId } = await pawl.start(parent, {});
  return { runId, seen };
}

const rowsBelow = (runId: string) =>
  sql(
    `select name, queue, priority, partition_key as key, eligible_at - inserted_at = interval '1 hour' as delayed,
       retention = interval '2 hours' as brief from runs where parent_id = $1 order by position`,
    [runId],
  );

describe("a child whose key is taken", () => {
  it("is not started: it is listed with its holder, and not waited for", async () => {
    const holder = await pawl.start("nobody", 0, { uniqueKey: "taken" });
    const earlier = await pawl.start(echo, 7, { idempotencyKey: "done-before" });
    await pawl.result(earlier.runId);
    const { runId, seen } = await spawning(() => [
      child(echo, 1),
      child("nobody", 2, { uniqueKey: "taken" }),
      child(echo, 3, { idempotencyKey: "done-before" }),
      child(echo, 4, { uniqueKey: "free" }),
    ]);
    expect(await pawl.result(runId)).toEqual([1, null, 7, 4]);
    expect(seen.children).toMatchObject([
      [
        { name: "echo", status: "completed", created: true },
        { runId: holder.runId, name: "nobody", status: "running", output: null, error: null, created: false },
        { runId: earlier.runId, name: "echo", status: "completed", output: 7, created: false },
        { name: "echo", status: "completed", created: true },
      ],
    ]);
    expect(await rowsBelow(runId)).toHaveLength(2);
    expect((await pawl.runs.get(holder.runId)).parentId).toBe(null);
  });

  it("is waited for through the sibling that took the key in the same spawn", async () => {
    const { runId, seen } = await spawning(() => [
      child(echo, 1, { uniqueKey: "sibling" }),
      child(echo, 2, { uniqueKey: "sibling" }),
    ]);
    expect(await pawl.result(runId)).toEqual([1, 1]);
    const [first, second] = seen.children[0]!;
    expect([first!.created, second!.created]).toEqual([true, false]);
    expect(second!.runId).toBe(first!.runId);
  });

  it("keeps nobody waiting if all are: the parent goes on at once", async () => {
    const holder = await pawl.start("nobody", 0, { uniqueKey: "all-taken" });
    const { runId, seen } = await spawning(() => [child("nobody", 1, { uniqueKey: "all-taken" })]);
    expect(await pawl.result(runId)).toEqual([null]);
    expect(seen.children[0]).toMatchObject([{ runId: holder.runId, status: "running", created: false }]);
  });

  it("may be taken by the parent itself, which then does not wait for itself", async () => {
    const own = machine({
      name: "own-key",
      steps: {
        start: (ctx) => ctx.spawn("gather", [child(echo, 1, { uniqueKey: "own" })], ctx.state),
        gather: (ctx) => ctx.done(ctx.children[0]!.runId),
      },
    });
    await serve([own]);
    const { runId } = await pawl.start(own, {}, { uniqueKey: "own" });
    expect(await pawl.result(runId)).toBe(runId);
  });

  it("is listed under the name of its holder, whatever was to be started", async () => {
    const holder = await pawl.start("nobody", 0, { uniqueKey: "of-another" });
    const { runId, seen } = await spawning(() => [child(echo, 1, { uniqueKey: "of-another" })]);
    await pawl.result(runId);
    expect(seen.children[0]).toMatchObject([{ runId: holder.runId, name: "nobody", created: false }]);
  });

  it("is listed as it was when its holder has been swept meanwhile", async () => {
    const holder = await pawl.start("nobody", 0, { uniqueKey: "soon-swept" });
    const { runId, seen } = await spawning(() => [
      child("nobody", 1, { uniqueKey: "soon-swept" }),
      child("nobody", 2),
    ]);
    const other = await until("it waits", async () => {
      const rows = await sql<{ id: string }>("select id::text from runs where parent_id = $1", [runId]);
      return rows[0] ?? null;
    });
    await sql("delete from runs where id = $1", [holder.runId]);
    await pawl.runs.cancel(other.id);
    await pawl.result(runId);
    expect(seen.children[0]).toMatchObject([
      { runId: holder.runId, name: "nobody", status: "running", output: null, created: false },
      { runId: other.id, status: "cancelled", created: true },
    ]);
  });
});

describe("a spawn that cannot be carried out is an error of the step, and starts nothing", () => {
  it("keys of one child that belong to different runs", async () => {
    const one = await pawl.start("nobody", 0, { uniqueKey: "conflict" });
    const other = await pawl.start("nobody", 0, { idempotencyKey: "conflict" });
    const { runId, seen } = await spawning(() => [
      child(echo, 1),
      child("nobody", 2, { uniqueKey: "conflict", idempotencyKey: "conflict" }),
    ]);
    await expect(pawl.result(runId)).rejects.toMatchObject({ code: "RunFailed" });
    expect(seen.errors).toHaveLength(1);
    expect(seen.errors[0]!.message).toContain(one.runId);
    expect(seen.errors[0]!.message).toContain(other.runId);
    expect(await rowsBelow(runId)).toEqual([]);
  });

  it("a rate limit that nobody has set, or a weight above its burst", async () => {
    await pawl.limits.set("narrow", { allowed: 1, period: "1h", burst: 2 });
    for (const [options, message] of [
      [{ rateLimit: "unheard-of" }, /no rate limit "unheard-of"/],
      [{ rateLimit: "narrow", weight: 3 }, /weight 3 is more than the burst/],
    ] as const) {
      const { runId, seen } = await spawning(() => [child(echo, 1), child(echo, 2, options)]);
      await expect(pawl.result(runId)).rejects.toMatchObject({ code: "RunFailed" });
      expect(seen.errors).toMatchObject([
        { code: "InvalidOutcome", message: expect.stringMatching(message) },
      ]);
      expect(await rowsBelow(runId)).toEqual([]);
    }
  });

  it("an input that the schema of the child refuses; the error names the child", async () => {
    const strict = job({ name: "strict", input: z.object({ n: z.number() }), run: (_ctx, { n }) => n });
    const { runId, seen } = await spawning(() => [
      child(strict, { n: 1 }),
      child(strict, { n: "two" } as never),
    ]);
    await expect(pawl.result(runId)).rejects.toMatchObject({ code: "RunFailed" });
    expect(seen.errors).toMatchObject([
      { code: "InvalidInput", message: expect.stringContaining("children[1].input") },
    ]);
    expect(await rowsBelow(runId)).toEqual([]);
  });

  it("an option that is unknown, and children that child(…) did not make", async () => {
    const wrong = await spawning(() => [child(echo, 1, { prio: 3 } as never)]);
    await expect(pawl.result(wrong.runId)).rejects.toThrow(/prio/);
    const raw = await spawning(() => [child(echo, 1), { name: "echo" } as never]);
    await expect(pawl.result(raw.runId)).rejects.toThrow(/children\[1\] must be made by child/);
    expect([...(await rowsBelow(wrong.runId)), ...(await rowsBelow(raw.runId))]).toEqual([]);
  });

  it("without a handle the parent fails with that error", async () => {
    const careless = machine({
      name: "careless",
      steps: { start: (ctx) => ctx.spawn("start", [child(echo, 1, { rateLimit: "unheard-of" })], {}) },
    });
    await serve([careless]);
    const { runId } = await pawl.start(careless, {});
    await expect(pawl.result(runId)).rejects.toThrow(/no rate limit "unheard-of"/);
    expect((await pawl.runs.get(runId)).error).toMatchObject({ code: "InvalidOutcome", step: "start" });
  });
});

describe("children are started like any run", () => {
  it("with queue, priority, delay, retention and partition key of their own", async () => {
    const { runId } = await spawning(() => [
      child(echo, 1, { queue: "elsewhere", priority: -3, partitionKey: "k", retention: "2h" }),
      child(echo, 2, { delay: "1h", priority: 5 }),
    ]);
    const rows = await until("it waits", async () => {
      const found = await rowsBelow(runId);
      return found.length === 2 && found;
    });
    expect(rows).toEqual([
      { name: "echo", queue: "elsewhere", priority: -3, key: "k", delayed: false, brief: true },
      { name: "echo", queue: "default", priority: 5, key: null, delayed: true, brief: false },
    ]);
  });

  it("by name, also before any worker has registered it", async () => {
    const { runId } = await spawning(() => [child("echo", 1), child("late-comer", 2)]);
    await until("the first has ended", async () => {
      const rows = await sql("select from runs where id = $1 and children_pending = 1", [runId]);
      return rows.length === 1;
    });
    await serve([job({ name: "late-comer", queue: "late", run: (_ctx, n: number) => n * 10 })]);
    expect(await pawl.result(runId)).toEqual([1, 20]);
    expect(await rowsBelow(runId)).toMatchObject([{ queue: "default" }, { queue: "late" }]);
  });

  it("with the partition key of their parent, which holds no key while it waits", async () => {
    const keyed = machine({
      name: "keyed",
      steps: {
        start: (ctx) =>
          ctx.spawn(
            "gather",
            [1, 2].map((n) => child(echo, n, { partitionKey: "shared" })),
            ctx.state,
          ),
        gather: (ctx) => ctx.done(ctx.children.map(({ output }) => output)),
      },
    });
    await serve([keyed]);
    const { runId } = await pawl.start(keyed, {}, { partitionKey: "shared" });
    expect(await pawl.result(runId)).toEqual([1, 2]);
  });

  it("with a delay that has passed before the parent goes on", async () => {
    const { runId } = await spawning(() => [child(echo, 1, { delay: 60 })]);
    expect(await pawl.result(runId)).toEqual([1]);
    const [row] = await sql(
      "select min(completed_at - eligible_at) >= interval '0' as on_time from runs where parent_id = $1",
      [runId],
    );
    expect(row).toEqual({ on_time: true });
  });
});
