import { type Child, child, job, machine, type } from "pawl";
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

/** Spawns what its input says; a leaf waits for a signal. */
const node = machine({
  name: "node",
  state: type<{ below: unknown[] }>(),
  steps: {
    start: (ctx) =>
      ctx.state.below.length === 0
        ? ctx.awaitSignal("go", "end", ctx.state)
        : ctx.spawn("end", ctx.state.below.map(toChild), ctx.state),
    end: (ctx) => ctx.done(ctx.children.map(({ status }) => status)),
  },
});
const toChild = (below: unknown): Child =>
  typeof below === "string" ? child(below, null) : child("node", { below: below as unknown[] });
await serve([node], { queues: { default: 50 } });

/** The tree below a run, top down: id, depth and status of each. */
const treeOf = (runId: string) =>
  sql<{ id: string; depth: number; status: string; reason: string | null }>(
    `with recursive tree as (
       select id, 0 as depth, status, error from runs where id = $1
       union all select r.id, t.depth + 1, r.status, r.error from tree t join runs r on r.parent_id = t.id)
     select id::text, depth, status, error ->> 'message' as reason from tree order by depth, id`,
    [runId],
  );

async function grow(below: unknown[], runs: number): Promise<{ runId: string; ids: string[] }> {
  const { runId } = await pawl.start(node, { below });
  const tree = await until("the tree has grown", async () => {
    const rows = await treeOf(runId);
    const isSettled = rows.every(({ status }) => status !== "runnable" && status !== "executing");
    return rows.length === runs && isSettled ? rows : null;
  });
  return { runId, ids: tree.map(({ id }) => id) };
}

const statuses = async (runId: string) => (await treeOf(runId)).map(({ status }) => status);

describe("cancel with cascade", () => {
  it("cancels the whole tree, each run with the reason; what has ended stays as it is", async () => {
    const { runId, ids } = await grow([[[], []], []], 5);
    const leaf = ids[2]!;
    await pawl.signal(leaf, "go");
    await pawl.result(leaf);
    expect(await pawl.runs.cancel(runId, { cascade: true, reason: "all of it" })).toEqual({ cancelled: 4 });
    for (const { id, status, reason } of await treeOf(runId)) {
      expect([status, reason]).toEqual(id === leaf ? ["done", null] : ["cancelled", "all of it"]);
    }
  });

  it("is not the default: the children go on", async () => {
    const { runId, ids } = await grow([[], []], 3);
    expect(await pawl.runs.cancel(runId)).toEqual({ cancelled: 1 });
    expect(await statuses(runId)).toEqual(["cancelled", "awaiting_signal", "awaiting_signal"]);
    await pawl.signal(ids[1]!, "go");
    expect(await pawl.result(ids[1]!)).toEqual([]);
  });

  it("of a run that was cancelled before cancels what is below, and keeps its reason", async () => {
    const { runId, ids } = await grow([[[]], []], 4);
    await pawl.runs.cancel(ids[1]!, { reason: "between" });
    await pawl.runs.cancel(runId, { reason: "first" });
    expect(await pawl.runs.cancel(runId, { cascade: true, reason: "rest" })).toEqual({ cancelled: 2 });
    expect((await treeOf(runId)).map(({ reason }) => reason)).toEqual(["first", "between", "rest", "rest"]);
    expect(await pawl.runs.cancel(runId, { cascade: true })).toEqual({ cancelled: 0 });
  });

  it("of a run in the middle counts for the barrier above it, once", async () => {
    const { runId, ids } = await grow([[[], []], []], 5);
    expect(await pawl.runs.cancel(ids[1]!, { cascade: true })).toEqual({ cancelled: 3 });
    expect(await statuses(runId)).toEqual([
      "awaiting_children",
      "cancelled",
      "awaiting_signal",
      "cancelled",
      "cancelled",
    ]);
    await pawl.signal(ids[2]!, "go");
    expect(await pawl.result(runId)).toEqual(["cancelled", "completed"]);
  });

  it("aborts every running step of the tree, and whoever waits for one of them hears", async () => {
    const open = gate();
    const signals: AbortSignal[] = [];
    const busy = job({
      name: "busy",
      run: (ctx) => {
        signals.push(ctx.signal);
        return open.pass();
      },
    });
    await serve([busy]);
    const { runId } = await pawl.start(node, { below: [["busy", "busy"], "busy"] });
    await until("three run", () => signals.length === 3);
    const waiting = (await treeOf(runId)).map(({ id }) => pawl.result(id).catch((error: unknown) => error));
    expect(await pawl.runs.cancel(runId, { cascade: true, reason: "halt" })).toEqual({ cancelled: 5 });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    for (const error of await Promise.all(waiting)) {
      expect(error).toMatchObject({ code: "RunCancelled", reason: "halt" });
    }
    open.open();
  });

  it("takes a thousand children at once, and lets in who waits for their keys", async () => {
    const wide = machine({
      name: "wide",
      steps: {
        start: (ctx) =>
          ctx.spawn(
            "start",
            Array.from({ length: 1_000 }, (_, n) =>
              child("unserved", n, { delay: "1h", partitionKey: `wide-${n % 10}` }),
            ),
            ctx.state,
          ),
      },
    });
    await serve([wide]);
    const { runId } = await pawl.start(wide, {});
    await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_children");
    expect(await pawl.runs.cancel(runId, { cascade: true })).toEqual({ cancelled: 1_001 });
    expect(await sql("select from runs where parent_id = $1 and status <> 'cancelled'", [runId])).toEqual([]);
  });

  it("cancels runs that would share a unique key once cancelled: one of them gets it", async () => {
    const options = { delay: "1h", uniqueKey: "heirloom", uniqueScope: ["cancelled"] } as const;
    const heirs = machine({
      name: "heirs",
      steps: {
        start: (ctx) =>
          ctx.spawn("start", [child("nobody", 1, options), child("nobody", 2, options)], ctx.state),
      },
    });
    await serve([heirs]);
    const { runId } = await pawl.start(heirs, {});
    await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_children");
    expect(await pawl.runs.cancel(runId, { cascade: true })).toEqual({ cancelled: 3 });
    const holders = await sql("select from runs where parent_id = $1 and unique_guard is not null", [runId]);
    expect(holders).toHaveLength(1);
  });
});

describe("cancel with cascade while the tree grows", () => {
  const live = (root: string) =>
    treeOf(root).then((rows) => rows.filter(({ status }) => !["cancelled", "done"].includes(status)));

  it("leaves nothing alive below", async () => {
    const shoot = machine({
      name: "shoot",
      queue: "growth",
      state: type<{ depth: number }>(),
      steps: {
        start: async ({ state: { depth }, spawn, state }) => {
          // As much work as any real step has: a tree that grows without any outruns whoever cuts it, for a while.
          await new Promise((resolve) => setTimeout(resolve, 20));
          return spawn(
            "end",
            [1, 2].map(() => child("shoot", { depth: depth + 1 })),
            state,
          );
        },
        end: (ctx) => ctx.done(),
      },
    });
    await serve([shoot], { queues: { growth: 5 } });
    await serve([shoot], { queues: { growth: 5 } });
    for (let round = 1; round <= 6; round++) {
      const { runId } = await pawl.start(shoot, { depth: 0 });
      await until("it grows", async () => (await treeOf(runId)).length > round * 3);
      await pawl.runs.cancel(runId, { cascade: true, reason: "felled" });
      expect(await live(runId)).toEqual([]);
      // What the workers had in hand comes to nothing.
      await until("all is let go", async () => {
        const rows = await sql("select from runs where queue = 'growth' and locked_by is not null");
        return rows.length === 0;
      });
      expect(await live(runId)).toEqual([]);
    }
  });
});
