import { child, connect, job, machine, type, workflow, type ListOptions } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { testServer } from "../../support/server.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { url } = await testServer({ database: database.url });
const remote = connect(url);

const quiet = job({ name: "quiet", run: () => null });
const failing = job({
  name: "failing",
  maxAttempts: 1,
  input: type<{ code?: string }>(),
  run: (_ctx, { code }) => {
    throw code === undefined ? new TypeError("no code") : Object.assign(new Error("no"), { code });
  },
});
const parent = machine({
  name: "parent",
  state: type<object>(),
  steps: {
    start: (ctx) => ctx.spawn("end", [child(quiet, 1), child(failing, { code: "E_TWO" })], {}),
    end: (ctx) => ctx.done(),
  },
});
const flow = workflow({
  name: "flow",
  run: async (ctx) => {
    await ctx.step.run(
      "flaky",
      ({ attempt }) => {
        if (attempt < 2) throw new Error("not yet");
        return "at last";
      },
      { retry: { attempts: 5, backoff: { kind: "fixed", base: 1 } } },
    );
    await ctx.step.sleep("rest", 20);
    return null;
  },
});

await serve([quiet, failing, parent, flow]);
const one = await pawl.start(quiet, null);
const coded = await pawl.start(failing, { code: "E_ONE" });
const named = await pawl.start(failing, {});
const family = await pawl.start(parent, {});
const flowing = await pawl.start(flow, null);
const delayed = await pawl.start(quiet, null, { delay: "1h" });
for (const { runId } of [one, coded, named, family, flowing])
  await pawl.result(runId as never).catch(() => null);

const listed = async (options: ListOptions): Promise<string[]> => {
  const [here, there] = await Promise.all([pawl.runs.list(options), remote.runs.list(options)]);
  expect(there.runs).toEqual(here.runs);
  const { limit: _limit, cursor: _cursor, ...filter } = options;
  const [count, thereToo] = await Promise.all([pawl.runs.count(filter), remote.runs.count(filter)]);
  expect(thereToo).toBe(count);
  if (here.cursor === null && options.cursor === undefined) expect(count).toBe(here.runs.length);
  return here.runs.map(({ runId }) => runId);
};

describe("runs.list and runs.count, straight and over a server", () => {
  it("find failures by the code of their error, or by its name if it has none", async () => {
    expect(await listed({ error: "E_ONE" })).toEqual([coded.runId]);
    expect(await listed({ error: "TypeError" })).toEqual([named.runId]);
    expect(await listed({ error: "E_ONE", name: "quiet" })).toEqual([]);
    expect(await listed({ error: "E_ONE", status: "completed" })).toEqual([]);
  });

  it("find the children of a run", async () => {
    const children = await listed({ parentId: family.runId });
    expect(children).toHaveLength(2);
    expect(await listed({ parentId: family.runId, error: "E_TWO" })).toHaveLength(1);
    expect(await listed({ parentId: family.runId, status: "completed" })).toHaveLength(1);
    expect(await listed({ parentId: one.runId })).toEqual([]);
  });

  it("find runs by their kind, their status and their time, without a name, newest first", async () => {
    expect(await listed({ kind: "machine" })).toEqual([family.runId]);
    expect(await listed({ kind: "workflow", status: "completed" })).toEqual([flowing.runId]);
    expect(await listed({ status: "running" })).toEqual([delayed.runId]);
    const { startedAt } = await pawl.runs.get(flowing.runId);
    const since = await listed({ since: startedAt });
    expect(since).toContain(flowing.runId);
    expect(since).toContain(delayed.runId);
    expect(since).not.toContain(one.runId);
    expect(await listed({ until: (await pawl.runs.get(coded.runId)).startedAt })).toEqual([one.runId]);
  });

  it("give the same runs page by page as in one page", async () => {
    for (const filter of [{ status: "failed" }, { kind: "job" }, {}] as const) {
      const whole = await listed({ ...filter, limit: 100 });
      const paged: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await pawl.runs.list({ ...filter, limit: 2, cursor });
        paged.push(...page.runs.map(({ runId }) => runId));
        cursor = page.cursor ?? undefined;
      } while (cursor !== undefined);
      expect(paged).toEqual(whole);
      expect(await pawl.runs.count(filter)).toBe(whole.length);
    }
  });

  it("merge names of which one has nearly all runs, and runs of the same instant, in order", async () => {
    for (const [name, count] of [
      ["few-a", 7],
      ["many", 150],
      ["few-b", 9],
      ["many", 150],
      ["few-c", 30],
    ] as const) {
      const runs = Array.from({ length: count }, () => ({ input: null, delay: "1h" as const }));
      await pawl.startMany(name, runs);
    }
    const inOrder = await database.sql<{ id: string }>(
      "select r.id::text from runs r where r.status = 'runnable' order by r.inserted_at desc, r.id desc",
    );
    const ids = inOrder.map(({ id }) => id);
    for (const limit of [1, 8, 20, 40, 100]) {
      const paged: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await pawl.runs.list({ status: "running", limit, cursor });
        paged.push(...page.runs.map(({ runId }) => runId));
        cursor = page.cursor ?? undefined;
      } while (cursor !== undefined && (limit >= 20 || paged.length < 50));
      expect(paged, `pages of ${limit}`).toEqual(ids.slice(0, paged.length));
      if (limit >= 20) expect(paged).toHaveLength(ids.length);
    }
  });

  it("find runs by a part of their input, with an index on it and without", async () => {
    const started = await pawl.startMany(
      "searched",
      Array.from({ length: 30 }, (_, n) => ({ input: { customer: { id: n % 3 }, n }, delay: "1h" as const })),
    );
    const expected = started
      .map(({ runId }) => runId)
      .filter((_, n) => n % 3 === 1)
      .toReversed();
    const look = async (): Promise<void> => {
      const input = { customer: { id: 1 } };
      expect(await listed({ input })).toEqual(expected);
      expect(await listed({ input, name: "searched", status: "running" })).toEqual(expected);
      expect(await listed({ input, name: "quiet" })).toEqual([]);
      expect(await listed({ input, limit: 4 })).toEqual(expected.slice(0, 4));
      const { cursor } = await pawl.runs.list({ input, limit: 4 });
      expect(await listed({ input, limit: 100, cursor: cursor! })).toEqual(expected.slice(4));
    };
    await look();
    await database.sql("create index runs_input on runs using gin (input jsonb_path_ops)");
    await look();
  });

  it("refuse filters that are none", async () => {
    await expect(pawl.runs.list({ kind: "cron" as never })).rejects.toThrow("kind must be");
    await expect(pawl.runs.list({ parentId: "x" })).rejects.toThrow("parentId must be");
    await expect(pawl.runs.count({ limit: 1 } as never)).rejects.toThrow("runs.count");
  });
});

describe("runs.steps", () => {
  it("tells the attempts and the times of each step", async () => {
    const steps = await pawl.runs.steps(flowing.runId);
    expect(steps).toMatchObject([
      { name: "flaky", kind: "run", status: "completed", attempt: 2, output: "at last" },
      { name: "rest", kind: "sleep", status: "completed", attempt: 0 },
    ]);
    const [flaky, rest] = steps as [(typeof steps)[0], (typeof steps)[0]];
    expect(rest.completedAt!.getTime() - rest.startedAt.getTime()).toBeGreaterThanOrEqual(20);
    expect(rest.startedAt.getTime()).toBeGreaterThanOrEqual(flaky.completedAt!.getTime());
    expect(await remote.runs.steps(flowing.runId)).toEqual(steps);
  });
});
