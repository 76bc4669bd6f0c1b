import { job, machine, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const ends: (() => void)[] = [];
const keyed = job({ name: "keyed", run: () => new Promise<void>((end) => ends.push(end)) });
const approval = machine({
  name: "approval",
  steps: {
    start: (ctx) => ctx.awaitSignal(["approve", "reject"], "decided", ctx.state, { timeout: "1h" }),
    decided: (ctx) => ctx.done(),
  },
});
const signup = workflow({ name: "signup", run: ({ step }) => step.waitForEvent("verified") });
const sleeper = workflow({ name: "sleeper", run: ({ step }) => step.sleep("nap", "1h") });
await serve([keyed, approval, signup, sleeper], { queues: { default: 20 } });

const parked = (runId: string) =>
  until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");

describe("waiting", () => {
  it("lists runs that await signals, with names, since and deadline, and no run that only sleeps", async () => {
    const first = await pawl.start(approval, {}, { tags: { customer: "42" } });
    const second = await pawl.start(signup);
    const third = await pawl.start(sleeper);
    for (const { runId } of [first, second, third]) await parked(runId);
    const { runs, cursor } = await pawl.waiting();
    expect(cursor).toBeNull();
    expect(runs).toEqual([
      expect.objectContaining({
        runId: second.runId,
        name: "signup",
        kind: "workflow",
        signals: ["verified"],
        deadline: null,
        tags: {},
      }),
      {
        runId: first.runId,
        name: "approval",
        version: 1,
        kind: "machine",
        queue: "default",
        step: "decided",
        signals: ["approve", "reject"],
        since: expect.any(Date),
        deadline: expect.any(Date),
        startedAt: expect.any(Date),
        tags: { customer: "42" },
      },
    ]);
    expect((await pawl.waiting({ signal: "approve" })).runs.map(({ name }) => name)).toEqual(["approval"]);
    expect((await pawl.waiting({ name: "signup", signal: "approve" })).runs).toEqual([]);
  });

  it("pages through all of them without a gap, also behind many runs that only sleep", async () => {
    await sql(
      `insert into runs (id, status, name, kind, queue, priority, retention, input, eligible_at, inserted_at, awaits)
      select nextval('run_ids') << 6, 'awaiting_signal', case when n % 2 = 0 then 'even' else 'odd' end, 'workflow', 'default', 0, '1 day', '{}',
        'infinity', clock() - interval '1 day' - n * interval '1 second',
        jsonb_build_object('names', case when n % 400 = 0 then '["go"]'::jsonb else '["~64"]' end, 'since', clock())
      from generate_series(1, 8000) n`,
    );
    const seen: string[] = [];
    let pages = 0;
    for (let cursor: string | undefined; ; pages++) {
      const page = await pawl.waiting({ signal: "go", limit: 3, cursor });
      expect(page.runs.length).toBeLessThanOrEqual(3);
      seen.push(...page.runs.map(({ runId }) => runId));
      if (page.cursor === null) break;
      ({ cursor } = page as { cursor: string });
    }
    expect(pages).toBeGreaterThanOrEqual(6);
    const wanted = await sql<{ id: string }>(
      `select id::text from runs where awaits -> 'names' ? 'go' order by inserted_at desc, id desc`,
    );
    expect(seen).toEqual(wanted.map(({ id }) => id));
    await expect(pawl.waiting({ cursor: "nonsense" })).rejects.toThrow(/cursor must be/);
  });
});

describe("keys", () => {
  it("lists held partition keys with holder, first in line and how many runs wait", async () => {
    const start = (partitionKey: string) => pawl.start(keyed, undefined, { partitionKey });
    const holder = await start("customer-1");
    await until("it executes", () => ends.length === 1);
    const next = await start("customer-1");
    await start("customer-1");
    await start("customer-2");
    await until("the other key is held", () => ends.length === 2);
    const keys = await until("two wait", async () => {
      const page = await pawl.keys();
      return page.keys[0]?.waiting === 2 ? page : undefined;
    });
    const run = { name: "keyed", version: 1, queue: "default" };
    expect(keys).toEqual({
      keys: [
        {
          key: "customer-1",
          holder: { ...run, runId: holder.runId, phase: "executing", worker: expect.any(String) },
          waiting: 2,
          first: { ...run, runId: next.runId, phase: "runnable", worker: null },
        },
        { key: "customer-2", holder: expect.objectContaining(run), waiting: 0, first: null },
      ],
      cursor: null,
    });
    const one = await pawl.keys({ limit: 1 });
    expect(one.keys.map(({ key }) => key)).toEqual(["customer-1"]);
    expect((await pawl.keys({ limit: 1, cursor: one.cursor! })).keys.map(({ key }) => key)).toEqual([
      "customer-2",
    ]);
  });

  it("of a concurrency limit say who holds its slots and how many runs wait", async () => {
    const before = ends.length;
    await pawl.limits.set("desk", { concurrent: 1 });
    const runs = [];
    for (const concurrency of ["desk", "desk", { name: "desk", key: "b" }, { name: "desk", key: "b" }])
      runs.push(await pawl.start(keyed, undefined, { concurrency }));
    await until("two execute", () => ends.length === before + 2);
    const slots = await until("two wait", async () => {
      const page = await pawl.limits.slots("desk");
      return page.keys.every(({ waiting }) => waiting === 1) && page.keys.length === 2 ? page : undefined;
    });
    expect(slots.keys).toEqual([
      { key: null, held: 1, waiting: 1, holders: [expect.objectContaining({ runId: runs[0]!.runId })] },
      { key: "b", held: 1, waiting: 1, holders: [expect.objectContaining({ runId: runs[2]!.runId })] },
    ]);
    const first = await pawl.limits.slots("desk", { limit: 1 });
    expect(first.keys).toEqual(slots.keys.slice(0, 1));
    expect((await pawl.limits.slots("desk", { limit: 1, cursor: first.cursor! })).keys).toEqual(
      slots.keys.slice(1),
    );
    expect(await pawl.limits.slots("nowhere")).toEqual({ keys: [], cursor: null });
    for (const end of ends) end();
    await until("all have run", async () => {
      for (const end of ends) end();
      return (await pawl.runs.list({ name: "keyed", status: "running" })).runs.length === 0;
    });
  });
});

describe("definitions and workers", () => {
  it("say what is registered, what the code of a machine declares, and who serves it", async () => {
    const { definitions } = await pawl.definitions.list();
    expect(definitions.map(({ name, version, workers }) => [name, version, workers])).toEqual([
      ["approval", 1, 1],
      ["keyed", 1, 1],
      ["signup", 1, 1],
      ["sleeper", 1, 1],
    ]);
    expect(definitions[0]).toMatchObject({
      kind: "machine",
      queue: "default",
      declared: {
        initial: "start",
        steps: ["start", "decided"],
        transitions: [{ from: "start", to: "decided", by: "awaitSignal" }],
      },
    });
    expect(definitions[1]!.declared).toEqual({});
    const first = await pawl.definitions.list({ limit: 2 });
    const rest = await pawl.definitions.list({ limit: 2, cursor: first.cursor! });
    expect([...first.definitions, ...rest.definitions]).toEqual(definitions);

    const { workers, cursor } = await pawl.workers();
    expect(cursor).toBeNull();
    expect(workers).toEqual([
      {
        id: expect.any(String),
        host: expect.any(String),
        pid: process.pid,
        runtime: `node ${process.version}`,
        serves: ["approval", "keyed", "signup", "sleeper"].map((name) => ({ name, version: 1 })),
        queues: ["default"],
        leaseMs: expect.any(Number),
        registeredAt: expect.any(Date),
        seenAt: expect.any(Date),
        leaseUntil: expect.any(Date),
        alive: true,
        claims: 0,
        token: null,
      },
    ]);
  });
});
