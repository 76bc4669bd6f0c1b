import { ChildFailed, job, machine, type StartOptions, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { journalOf, suspended } from "../../support/journal.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, store } = database;

const childrenOf = (runId: string) =>
  sql<{ id: string; name: string; status: string; input: unknown; priority: number; queue: string }>(
    "select id, name, status, input, priority, queue from runs where parent_id = $1 order by id",
    [runId],
  );
const childOf = (runId: string): Promise<string> =>
  until("the child is there", async () => (await childrenOf(runId))[0]?.id);

/** What a body can tell of an error that it has caught. */
const described = (error: unknown) => {
  const { code, message, step, error: record } = error as ChildFailed;
  return { isChildFailed: error instanceof ChildFailed, code, message, step, error: record };
};

const double = job({ name: "double", run: (_ctx, input: { n: number }) => input.n * 2 });
const count = machine({
  name: "count",
  state: z.object({ n: z.number() }),
  steps: {
    start: (ctx) => ctx.next("end", { n: ctx.state.n + 1 }),
    end: (ctx) => ctx.done({ counted: ctx.state.n }),
  },
});
const greet = workflow({
  name: "greet",
  run: async ({ step }, input: { name: string }) => step.run("say", () => `hello ${input.name}`),
});

describe("invoke", () => {
  it("starts a job, a machine or a workflow, suspends, and gives its output", async () => {
    let calls = 0;
    const parent = workflow({
      name: "parent",
      run: async ({ step }) => {
        calls++;
        const doubled = await step.invoke("double", double, { n: 4 });
        const { counted } = await step.invoke("count", count, { n: doubled });
        return step.invoke("greet", greet, { name: `number ${counted}` });
      },
    });
    await serve([parent, double, count, greet]);
    const { runId } = await pawl.start(parent);
    expect(await pawl.result(runId)).toBe("hello number 9");
    expect(calls).toBe(4);
    expect(await childrenOf(runId)).toMatchObject([
      { name: "double", status: "done", input: { n: 4 } },
      { name: "count", status: "done", input: { n: 8 } },
      { name: "greet", status: "done", input: { name: "number 9" } },
    ]);
    expect(await journalOf(database, runId)).toMatchObject([
      { name: "double", kind: "invoke", output: 8, seq: 1 },
      { name: "count", kind: "invoke", output: { counted: 9 } },
      { name: "greet", kind: "invoke", output: "hello number 9" },
    ]);
  });

  it("starts a run by its name, with the options of a start", async () => {
    const options: StartOptions = { priority: -5, queue: "vip", partitionKey: "k" };
    const parent = workflow({
      name: "by-name",
      run: async ({ step }) => step.invoke("child", "double", { n: 21 }, options),
    });
    await serve([parent, double], { queues: { default: 5, vip: 5 } });
    const { runId } = await pawl.start(parent);
    expect(await pawl.result(runId)).toBe(42);
    expect(await childrenOf(runId)).toMatchObject([{ name: "double", priority: -5, queue: "vip" }]);
  });

  it("several invoked runs run at the same time; each starts once, however often the parent is resumed", async () => {
    const all = gate();
    const slow = job({ name: "slow", run: async (_ctx, n: number) => (await all.pass(), n) });
    const parent = workflow({
      name: "fan-out",
      run: async ({ step }) => {
        const children = [1, 2, 3].map((n) => step.invoke(`child-${n}`, slow, n));
        await step.waitForEvent("poke");
        return Promise.all(children);
      },
    });
    await serve([parent, slow]);
    const { runId } = await pawl.start(parent);
    await until("all run", () => all.entered() === 3);
    await suspended(database, runId);
    await pawl.signal(runId, "poke", {});
    all.open();
    expect(await pawl.result(runId)).toEqual([1, 2, 3]);
    expect(await childrenOf(runId)).toHaveLength(3);
  });

  it("a child that ends while the body is alive is heard of while another step runs", async () => {
    const running = gate();
    const parent = workflow({
      name: "busy-parent",
      run: async ({ step }) => {
        const long = step.run("long", async () => (await running.pass(), "long"));
        return Promise.race([long, step.invoke("child", double, { n: 1 })]);
      },
    });
    await serve([parent, double]);
    const { runId } = await pawl.start(parent);
    expect(await pawl.result(runId)).toBe(2);
    running.open();
  });

  it("a child that fails throws ChildFailed with its error: catchable, the same on replay", async () => {
    const failing = job({
      name: "failing",
      maxAttempts: 1,
      run: () => {
        throw new RangeError("too far");
      },
    });
    const caught: unknown[] = [];
    const parent = workflow({
      name: "catching",
      run: async ({ step }) => {
        await step.invoke("child", failing).catch((error: unknown) => caught.push(described(error)));
        await step.waitForEvent("again");
        return "went on";
      },
    });
    await serve([parent, failing]);
    const { runId } = await pawl.start(parent);
    await until("it caught it", () => caught.length === 1);
    await suspended(database, runId);
    await pawl.signal(runId, "again", {});
    expect(await pawl.result(runId)).toBe("went on");
    const childId = await childOf(runId);
    expect(caught).toEqual(
      Array(2).fill({
        isChildFailed: true,
        code: "ChildFailed",
        message: `step "child": run ${childId} failed: too far`,
        step: "child",
        error: {
          name: "RangeError",
          message: "too far",
          stack: expect.stringContaining("workflow-invoke.test.ts") as string,
        },
      }),
    );
  });

  it("a ChildFailed that the parent does not catch fails the parent with that cause, at that step", async () => {
    const failing = job({
      name: "failing-too",
      maxAttempts: 1,
      run: () => {
        throw new Error("child's fault");
      },
    });
    const parent = workflow({ name: "not-catching", run: async ({ step }) => step.invoke("child", failing) });
    await serve([parent, failing]);
    const { runId } = await pawl.start(parent);
    await expect(pawl.result(runId)).rejects.toMatchObject({
      error: { code: "ChildFailed", step: "child", cause: { message: "child's fault" } },
    });
  });

  it.each(["this process", "elsewhere"])(
    "a child that is cancelled (from %s) throws ChildFailed",
    async (from) => {
      const name = `never-${from.length}`;
      const never = workflow({ name, run: async ({ step }) => step.waitForEvent("never") });
      const parent = workflow({
        name: `parent-of-${name}`,
        run: async ({ step }) => {
          const failure: unknown = await step.invoke("child", never).catch((error: unknown) => error);
          return described(failure);
        },
      });
      await serve([parent, never], { maxPollInterval: "100ms" });
      const { runId } = await pawl.start(parent);
      const childId = await childOf(runId);
      await suspended(database, runId);
      if (from === "elsewhere") await store.cancel(childId, { reason: "not needed", cascade: false });
      else await pawl.runs.cancel(childId, { reason: "not needed" });
      expect(await pawl.result(runId)).toMatchObject({
        isChildFailed: true,
        message: `step "child": run ${childId} was cancelled: not needed`,
        error: { code: "RunCancelled" },
      });
    },
  );

  it.each<[string, StartOptions]>([
    ["unique", { uniqueKey: "taken" }],
    ["idempotency", { idempotencyKey: "taken" }],
  ])(
    "a key that is taken (%s) is ChildFailed with KeyConflict, naming the holder; nothing is started",
    async (what, options) => {
      const held = workflow({ name: `held-${what}`, run: async ({ step }) => step.waitForEvent("never") });
      const parent = workflow({
        name: `conflicting-${what}`,
        run: async ({ step }) => {
          const failure: unknown = await step
            .invoke("child", held, null, options)
            .catch((error: unknown) => error);
          await step.sleep("nap", 1);
          const { runId, error } = failure as ChildFailed;
          return { ...described(failure), runId, code: error?.code };
        },
      });
      await serve([parent, held]);
      const holder = await pawl.start(held, null, options);
      const { runId } = await pawl.start(parent);
      expect(await pawl.result(runId)).toMatchObject({
        isChildFailed: true,
        runId: holder.runId,
        code: "KeyConflict",
      });
      expect(await childrenOf(runId)).toEqual([]);
    },
  );

  it("what the database refuses of a child is the same on replay, also when it would not refuse it any more", async () => {
    const caught: string[] = [];
    const parent = workflow({
      name: "refused",
      run: async ({ step }) => {
        const invoked = step.invoke("child", double, { n: 1 }, { rateLimit: "unset" });
        await invoked.catch((error: unknown) => caught.push((error as ChildFailed).code));
        await step.waitForEvent("again");
        return "went on";
      },
    });
    await serve([parent, double]);
    const { runId } = await pawl.start(parent);
    await until("it was refused", () => caught.length === 1);
    await suspended(database, runId);
    await pawl.limits.set("unset", { allowed: 10, period: "1s" });
    await pawl.signal(runId, "again", {});
    expect(await pawl.result(runId)).toBe("went on");
    expect(caught).toEqual(["ChildFailed", "ChildFailed"]);
    expect(await childrenOf(runId)).toEqual([]);
  });

  it("an input that its schema refuses is thrown at the call, and nothing is started", async () => {
    const caught: unknown[] = [];
    const parent = workflow({
      name: "bad-input",
      run: async ({ step }) => {
        await step
          .invoke("child", count, { n: "text" as never })
          .catch((error: unknown) => caught.push(error));
        return "went on";
      },
    });
    await serve([parent, count]);
    const { runId } = await pawl.start(parent);
    expect(await pawl.result(runId)).toBe("went on");
    expect(caught).toMatchObject([{ code: "InvalidInput" }]);
    expect(await childrenOf(runId)).toEqual([]);
  });

  it("an invoked workflow may invoke others", async () => {
    const tower = workflow({
      name: "tower",
      run: async ({ step }, depth: number): Promise<number> =>
        depth === 0 ? 0 : 1 + ((await step.invoke("below", "tower", depth - 1)) as number),
    });
    await serve([tower]);
    expect(await pawl.result((await pawl.start(tower, 12)).runId)).toBe(12);
  });

  it("a parent that ends first leaves its child alone, and gets no reply", async () => {
    const open = gate();
    const lasting = job({ name: "lasting", run: async () => open.pass() });
    const parent = workflow({
      name: "leaving-parent",
      run: async ({ step }) => {
        const child = step.invoke("child", lasting);
        return Promise.race([child, step.waitForEvent("leave")]);
      },
    });
    await serve([parent, lasting]);
    const { runId } = await pawl.start(parent);
    await until("the child runs", open.entered);
    await pawl.signal(runId, "leave", { left: true });
    expect(await pawl.result(runId)).toEqual({ left: true });
    open.open();
    await pawl.result(await childOf(runId));
    expect(await sql("select from signals where run_id = $1", [runId])).toEqual([]);
  });

  it("cancelling the parent with cascade cancels what it has invoked, without it does not", async () => {
    const never = workflow({ name: "below", run: async ({ step }) => step.waitForEvent("never") });
    const middle = workflow({ name: "middle", run: async ({ step }) => step.invoke("child", never) });
    const top = workflow({ name: "top", run: async ({ step }) => step.invoke("child", middle) });
    await serve([top, middle, never]);
    const tree = async () => {
      const { runId } = await pawl.start(top);
      const below = await childOf(runId);
      const lowest = await childOf(below);
      for (const id of [runId, below, lowest]) await suspended(database, id);
      return [runId, below, lowest] as const;
    };
    const statuses = (ids: readonly string[]) =>
      Promise.all(ids.map(async (runId) => (await pawl.runs.get(runId)).status));
    const cut = await tree();
    await pawl.runs.cancel(cut[0], { cascade: true });
    expect(await statuses(cut)).toEqual(["cancelled", "cancelled", "cancelled"]);
    const kept = await tree();
    await pawl.runs.cancel(kept[0]);
    expect(await statuses(kept)).toEqual(["cancelled", "running", "running"]);
    await pawl.runs.cancel(kept[1], { cascade: true });
  });
});
