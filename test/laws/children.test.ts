import { child, type ChildRun, job, machine, NonRetryable, signal, type } from "pawl";
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

const echo = job({ name: "echo", run: (_ctx, n: number) => ({ n }) });
const bad = job({
  name: "bad",
  run: (): number => {
    throw new NonRetryable("broken");
  },
});
await serve([echo, bad], { queues: { default: 100 } });

const childIds = async (parentId: string): Promise<string[]> => {
  const rows = await sql<{ id: string }>(
    "select id::text from runs where parent_id = $1 order by child_of, position",
    [parentId],
  );
  return rows.map(({ id }) => id);
};

describe("the barrier", () => {
  it("opens once, when every child is terminal: done, failed and cancelled alike; failures are data", async () => {
    const seen: (readonly ChildRun[])[] = [];
    const family = machine({
      name: "family",
      steps: {
        start: (ctx) =>
          ctx.spawn("gather", [child(echo, 1), child(bad), child("nobody", 0), child(echo, 2)], ctx.state),
        gather: (ctx) => {
          seen.push(ctx.children);
          return ctx.done(ctx.children.length);
        },
      },
    });
    await serve([family]);
    const { runId } = await pawl.start(family, {});
    await until("one child is left", async () => {
      const [row] = await sql("select children_pending from runs where id = $1", [runId]);
      return row!["children_pending"] === 1;
    });
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "awaiting_children", eligibleAt: null });
    expect(seen).toEqual([]);
    const ids = await childIds(runId);
    await pawl.runs.cancel(ids[2]!, { reason: "too late" });
    expect(await pawl.result(runId)).toBe(4);
    expect(seen).toMatchObject([
      [
        { runId: ids[0], name: "echo", status: "completed", output: { n: 1 }, error: null, created: true },
        {
          runId: ids[1],
          name: "bad",
          status: "failed",
          output: null,
          error: { name: "NonRetryable", code: "NonRetryable", message: "broken" },
          created: true,
        },
        {
          runId: ids[2],
          name: "nobody",
          status: "cancelled",
          output: null,
          error: { name: "RunCancelled", code: "RunCancelled", message: "too late" },
          created: true,
        },
        { runId: ids[3], name: "echo", status: "completed", output: { n: 2 }, error: null, created: true },
      ],
    ]);
    expect((await pawl.runs.get(ids[0]!)).parentId).toBe(runId);
  });

  it("opens once when many children end at the same moment on two workers", async () => {
    const together = gate();
    let gathered = 0;
    const held = job({ name: "held", run: together.pass });
    const crowd = machine({
      name: "crowd",
      state: type<{ size: number }>(),
      steps: {
        start: (ctx) =>
          ctx.spawn(
            "gather",
            Array.from({ length: ctx.state.size }, () => child(held)),
            ctx.state,
          ),
        gather: (ctx) => {
          gathered++;
          return ctx.done(ctx.children.map(({ status }) => status));
        },
      },
    });
    await serve([held, crowd], { queues: { default: 100 } });
    await serve([held, crowd], { queues: { default: 100 } });
    const { runId } = await pawl.start(crowd, { size: 150 });
    await until("all children run", () => together.entered() === 150);
    const [holders] = await sql<{ n: string }>(
      "select count(distinct locked_by) as n from runs where parent_id = $1",
      [runId],
    );
    expect(holders).toEqual({ n: "2" });
    together.open();
    expect(await pawl.result(runId)).toEqual(Array(150).fill("completed"));
    expect(gathered).toBe(1);
  });

  it("is no barrier without children: the parent goes on at once", async () => {
    const childless = machine({
      name: "childless",
      steps: {
        start: (ctx) => ctx.spawn("gather", [], ctx.state),
        gather: (ctx) => ctx.done(ctx.children.map(({ runId }) => runId)),
      },
    });
    await serve([childless], { pollInterval: "1h", maxPollInterval: "1h" });
    expect(await pawl.result((await pawl.start(childless, {})).runId)).toEqual([]);
  });

  it("nests: parents of parents wait for their own children only", async () => {
    const mid = machine({
      name: "mid",
      state: type<{ from: number }>(),
      steps: {
        start: ({ spawn, state }) =>
          spawn("sum", [child(echo, state.from), child(echo, state.from + 1)], state),
        sum: (ctx) => ctx.done(ctx.children.reduce((sum, one) => sum + (one.output as { n: number }).n, 0)),
      },
    });
    const root = machine({
      name: "root",
      steps: {
        start: (ctx) => ctx.spawn("collect", [child(mid, { from: 1 }), child(mid, { from: 10 })], ctx.state),
        collect: (ctx) => ctx.done(ctx.children.map(({ output }) => output)),
      },
    });
    await serve([root, mid]);
    expect(await pawl.result((await pawl.start(root, {})).runId)).toEqual([3, 21]);
  });

  it("works for a machine that is its own child, which is a parent and a child at once", async () => {
    const countdown = machine({
      name: "countdown",
      state: type<{ n: number }>(),
      steps: {
        start: (ctx) => {
          if (ctx.state.n === 0) return ctx.done(["end"]);
          return ctx.spawn("up", [child("countdown", { n: ctx.state.n - 1 })], ctx.state);
        },
        up: (ctx) => ctx.done([ctx.state.n, ...(ctx.children[0]!.output as string[])]),
      },
    });
    await serve([countdown]);
    const { runId } = await pawl.start(countdown, { n: 5 });
    expect(await pawl.result(runId)).toEqual([5, 4, 3, 2, 1, "end"]);
  });

  it("takes 10,000 children of one parent, and the parent sees all of them in order", async () => {
    let executed = 0;
    let gathered = 0;
    const one = job({
      name: "one-of-many",
      queue: "many",
      run: (_ctx, n: number) => {
        executed++;
        return n;
      },
    });
    const many = machine({
      name: "many",
      queue: "many",
      steps: {
        start: (ctx) =>
          ctx.spawn(
            "gather",
            Array.from({ length: 10_000 }, (_, n) => child(one, n)),
            ctx.state,
          ),
        gather: (ctx) => {
          gathered++;
          const ordered = ctx.children.every(
            ({ output, status }, n) => output === n && status === "completed",
          );
          return ctx.done({ children: ctx.children.length, ordered });
        },
      },
    });
    await serve([one, many], { queues: { many: 200 } });
    await serve([one, many], { queues: { many: 200 } });
    const { runId } = await pawl.start(many, {});
    expect(await pawl.result(runId)).toEqual({ children: 10_000, ordered: true });
    expect({ executed, gathered }).toEqual({ executed: 10_000, gathered: 1 });
  });
});

describe("ctx.children", () => {
  const told = ({ children }: { children: readonly ChildRun[] }) => children.map(({ output }) => output);

  it("is there again on retry, in handle, and after a crash of the worker", async () => {
    const seen: unknown[] = [];
    const stubborn = machine({
      name: "stubborn",
      steps: {
        start: (ctx) => ctx.spawn("gather", [child(echo, 1), child(echo, 2)], ctx.state),
        gather: async (ctx) => {
          seen.push(["gather", ctx.attempt, told(ctx)]);
          if (ctx.attempt === 0) return ctx.retry(ctx.state, 0);
          if (ctx.attempt === 1) throw new Error("again");
          if (ctx.attempt > 2) return ctx.done("through");
          // As if the worker were gone: its claim is held by one that nobody has heard of.
          await sql("update runs set locked_by = 'dead' where id = $1", [ctx.runId]);
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
          return ctx.done("not recorded");
        },
      },
      handle: (_error, ctx) => {
        seen.push(["handle", ctx.attempt, told(ctx)]);
        return ctx.retry(ctx.state, 0);
      },
    });
    await serve([stubborn]);
    const { runId } = await pawl.start(stubborn, {});
    expect(await pawl.result(runId)).toBe("through");
    const both = [{ n: 1 }, { n: 2 }];
    expect(seen.filter((one) => JSON.stringify(one).startsWith('["gather"'))).toEqual([
      ["gather", 0, both],
      ["gather", 1, both],
      ["gather", 2, both],
      ["gather", 3, both],
    ]);
    expect(seen).toContainEqual(["handle", 1, both]);
  });

  it("is empty before the spawn and after the next progress, and holds the last spawn only", async () => {
    const seen: unknown[] = [];
    const twice = machine({
      name: "twice",
      steps: {
        start: (ctx) => {
          seen.push(["start", told(ctx)]);
          return ctx.spawn("first", [child(echo, 1)], ctx.state);
        },
        first: (ctx) => {
          seen.push(["first", told(ctx)]);
          return ctx.spawn("second", [child(echo, 2), child(echo, 3)], ctx.state);
        },
        second: (ctx) => {
          seen.push(["second", told(ctx)]);
          return ctx.next("after", ctx.state);
        },
        after: (ctx) => {
          seen.push(["after", told(ctx)]);
          return ctx.next("reclaimed", ctx.state, { priority: 1 });
        },
        reclaimed: (ctx) => {
          seen.push(["reclaimed", told(ctx)]);
          return ctx.spawn("parting", [child(echo, 4)], ctx.state);
        },
        parting: (ctx) => ctx.awaitSignal("never", "last", ctx.state, { timeout: 1 }),
        last: (ctx) => {
          seen.push(["last", told(ctx), ctx.timedOut]);
          return ctx.done();
        },
      },
    });
    await serve([twice]);
    await pawl.result((await pawl.start(twice, {})).runId);
    expect(seen).toEqual([
      ["start", []],
      ["first", [{ n: 1 }]],
      ["second", [{ n: 2 }, { n: 3 }]],
      ["after", []],
      ["reclaimed", []],
      ["last", [], true],
    ]);
  });
});

describe("spawn and signals", () => {
  it("a spawn consumes what the step saw as awaited, and nothing else", async () => {
    const mailed = machine({
      name: "mailed",
      signals: { go: signal<{ n: number }>(), other: signal<{ n: number }>() },
      steps: {
        start: (ctx) => ctx.awaitSignal("go", "went", ctx.state),
        went: (ctx) => ctx.spawn("gather", [child(echo, ctx.awaited[0]!.payload.n)], ctx.state),
        gather: (ctx) => ctx.done({ awaited: ctx.awaited, inbox: ctx.inbox.map(({ name }) => name) }),
      },
    });
    await serve([mailed]);
    const { runId } = await pawl.start(mailed, {});
    await pawl.signal(runId, "other", { n: 1 });
    await pawl.signal(runId, "go", { n: 2 });
    expect(await pawl.result(runId)).toEqual({ awaited: [], inbox: ["other"] });
  });
});
