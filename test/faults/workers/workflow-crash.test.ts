/**
 * A worker that dies at every instant at which something of a workflow is committed: as the statement leaves, and as its reply comes
 * back. Wherever that is, the next worker brings the run to the same end, with each step recorded once.
 */

import { connect, job, serve, type Worker, workflow } from "pawl";
import { afterAll, expect, it } from "vitest";
import { testDatabase, type TestDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { journalOf } from "../../support/journal.js";
import { until } from "../../support/until.js";
import { cuttingProxy } from "../arena/cutting-proxy.js";

const database = await testDatabase();
const pawl = connect(database.url);
await database.sql("create table public.moved (name text)");
const stopping: Promise<void>[] = [];
afterAll(async () => {
  await Promise.all(stopping);
  await pawl.close();
}, 60_000);

const options = {
  drainTimeout: 0,
  maxPollInterval: "20ms",
  reapInterval: "20ms",
  lease: "6s",
  heartbeat: "1s",
  logger: silent,
} as const;
const stop = (worker: Worker): number => stopping.push(worker.stop());

/** A workflow of every kind of step, with a count of what its functions are called. */
function make(name: string) {
  const calls = new Map<string, number>();
  const tell = <T>(step: string, value: T): T => {
    calls.set(step, (calls.get(step) ?? 0) + 1);
    return value;
  };
  const child = job({ name: `${name}-child`, queue: name, run: (_ctx, n: number) => tell("child", n + 1) });
  const parent = workflow({
    name,
    queue: name,
    run: async ({ step }) => {
      const one = await step.run("one", () => tell("one", 1));
      const flaky = await step.run(
        "flaky",
        ({ attempt }) => {
          tell(`flaky-${attempt}`, null);
          if (attempt === 0) throw new Error("the first time");
          return "mended";
        },
        { retry: { attempts: 2, backoff: { kind: "fixed", base: 1 } } },
      );
      const both = await Promise.all([
        step.run("left", async () => tell("left", one + 1)),
        step.run("right", () => tell("right", one + 2)),
      ]);
      const moved = await step.transaction("move", async (tx) => {
        await tx.query("insert into public.moved values ($1)", [name]);
        return tell("move", "moved");
      });
      await step.sleep("nap", 1);
      const event = await step.waitForEvent("event", { match: { n: 2 } });
      const timeout = await step.waitForEvent("never", { timeout: 1 });
      const added = await step.invoke("child", child, 41);
      const failed: unknown = await step
        .run("hopeless", () => tell("hopeless", Promise.reject(new Error("no"))), { retry: { attempts: 1 } })
        .catch((error: unknown) => (error as Error).message);
      return { one, flaky, both, moved, event, timeout, added, failed };
    },
  });
  return { parent, child, calls };
}

const expected = {
  one: 1,
  flaky: "mended",
  both: [2, 3],
  moved: "moved",
  event: { n: 2 },
  timeout: null,
  added: 42,
  failed: 'step "hopeless" failed: no',
};
const journal = [
  { name: "child", kind: "invoke", output: 42, error: null, attempt: 0 },
  { name: "event", kind: "wait", output: { n: 2 }, error: null, attempt: 0 },
  { name: "flaky", kind: "run", output: "mended", error: null, attempt: 1 },
  { name: "hopeless", kind: "run", output: null, error: { message: "no" }, attempt: 0 },
  { name: "left", kind: "run", output: 2, error: null, attempt: 0 },
  { name: "move", kind: "transaction", output: "moved", error: null, attempt: 0 },
  { name: "nap", kind: "sleep", output: null, error: null, attempt: 0 },
  { name: "never", kind: "wait", output: null, error: null, attempt: 0 },
  { name: "one", kind: "run", output: 1, error: null, attempt: 0 },
  { name: "right", kind: "run", output: 3, error: null, attempt: 0 },
];

/** Runs it with a worker that dies at this instant. Answers whether it came to that. */
async function dieAt(instant: number, seen: TestDatabase): Promise<boolean> {
  const { sql } = seen;
  const name = `crash-${instant}`;
  const { parent, child, calls } = make(name);
  const { runId } = await pawl.start(parent);
  await pawl.signal(runId, "event", { n: 1 });
  await pawl.signal(runId, "event", { n: 2 });
  const proxy = await cuttingProxy(database.url, instant);
  const victim = serve([parent, child], { ...options, url: proxy.url });
  const result = pawl.result(runId, { timeout: "90s" });
  result.catch(() => {});
  const isCut = await Promise.race([proxy.cut.then(() => true), result.then(() => false)]);
  if (isCut) {
    // Nobody has to wait until its lease has passed.
    await sql("delete from workers where $1 = any (serves)", [`${name}@1`]);
    const before = new Map(calls);
    const recorded = (await journalOf(seen, runId)).filter(({ completed }) => completed);
    const survivor = serve([parent, child], { ...options, url: database.url });
    expect(await result).toEqual(expected);
    stop(survivor);
    // What was recorded before the crash is not done again, the rest at most once more.
    for (const { name: step } of recorded) expect([step, calls.get(step)]).toEqual([step, before.get(step)]);
    for (const [step, times] of calls) expect([step, Math.min(times, 3)]).not.toEqual([step, 3]);
  }
  stop(victim);
  proxy.close();
  expect(await result).toEqual(expected);
  const rows = await journalOf(seen, runId);
  expect(rows.toSorted((one, other) => (one.name < other.name ? -1 : 1))).toMatchObject(journal);
  expect(new Set(rows.map(({ seq }) => seq)).size).toBe(rows.length);
  expect(await sql("select status from runs where parent_id = $1", [runId])).toEqual([{ status: "done" }]);
  expect(await sql("select from signals where run_id = $1", [runId])).toEqual([]);
  expect(await sql("select from public.moved where name = $1", [name])).toHaveLength(1);
  await until("nobody holds it", async () => {
    const held = "select from runs where id = $1 and locked_by is not null";
    return (await sql(held, [runId])).length === 0;
  });
  return isCut;
}

it(
  "a workflow comes to the same end wherever its worker dies between two commits",
  { timeout: 300_000 },
  async () => {
    let next = 1;
    let points = 0;
    const lane = async (): Promise<void> => {
      const client = await database.connect();
      const sql = async <Row>(text: string, values?: unknown[]) =>
        (await client.query(text, values)).rows as Row[];
      while (await dieAt(next++, { ...database, sql })) points++;
    };
    await Promise.all([lane(), lane(), lane()]);
    console.info(`crashes of a workflow's worker: ${points} instants`);
    expect(points).toBeGreaterThan(40);
  },
);
