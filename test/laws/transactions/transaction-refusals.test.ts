/**
 * The database cannot, or will not, write an outcome now, for a reason that has nothing to do with
 * the step: somebody has the run locked, a right was revoked, the login is refused. The run waits
 * until it can, and no attempt is used: all definitions here have but one.
 */

import { job, type Logger, machine, type Transaction, workflow } from "pawl";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent, testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;
await sql("create table public.ledger (run_id text not null)");

/** A role that owns nothing. */
const role = `limited_${Math.random().toString(36).slice(2)}`;
await sql(`create role ${role} login`);
await sql(`grant usage on schema pawl to ${role}`);
await sql(`grant all on all tables in schema pawl to ${role}`);
await sql(`grant all on all sequences in schema pawl to ${role}`);
await sql(`grant all on public.ledger to ${role}`);
afterAll(async () => {
  await sql(`drop owned by ${role}`);
  await sql(`drop role ${role}`);
});
const limited = new URL(database.directUrl);
limited.username = role;

/** Where the first call of each run waits, before its transaction and inside of it. */
let before = gate();
let inside = gate();
beforeEach(() => {
  before = gate();
  inside = gate();
  calls = 0;
});
let calls = 0;

async function move(tx: Transaction, runId: string): Promise<string> {
  await tx.query("insert into public.ledger values ($1)", [runId]);
  if (++calls === 1) await inside.pass();
  return "moved";
}
const inJob = job({
  name: "in-job",
  maxAttempts: 1,
  run: async (ctx) => {
    await before.pass();
    return ctx.transaction((tx) => move(tx, ctx.runId));
  },
});
const inMachine = machine({
  name: "in-machine",
  steps: {
    start: async (ctx) => {
      await before.pass();
      return ctx.transaction(async (tx) => ctx.done(await move(tx, ctx.runId)));
    },
  },
});
const once = { retry: { attempts: 1 } };
const inWorkflow = workflow({
  name: "in-workflow",
  run: async (ctx) => {
    await before.pass();
    return ctx.step.transaction("move", (tx) => move(tx, ctx.runId), once);
  },
});
const definitions = [inJob, inMachine, inWorkflow];

async function isMovedOnce(runId: string): Promise<void> {
  expect(await pawl.result(runId, { timeout: "100s" })).toBe("moved");
  expect(await sql("select from public.ledger where run_id = $1", [runId])).toHaveLength(1);
  expect(await pawl.runs.get(runId)).toMatchObject({ attempt: 0 });
}

/** A logger that keeps what is warned of. */
function listening() {
  const warnings: string[] = [];
  const warn = (_details: object | string, message?: string): void => void warnings.push(message ?? "");
  const logger: Logger = { ...silent, warn };
  return { logger, warned: (part: string) => warnings.filter((message) => message.includes(part)).length };
}

const isOver = async (runId: string): Promise<boolean> => (await pawl.runs.get(runId)).status !== "running";

describe.each([
  ["a job", async () => (await pawl.start(inJob, null)).runId],
  ["a machine without handle", async () => (await pawl.start(inMachine, {})).runId],
  ["a step of a workflow", async () => (await pawl.start(inWorkflow)).runId],
])("a transaction of %s", (_name, start) => {
  it("is done again until whoever holds the run lets it go", async () => {
    const worker = await serve(definitions, { lease: "1m" });
    before.open();
    const runId = await start();
    await until("its transaction is open", inside.entered);
    const holder = await database.connect();
    await holder.query("begin");
    await holder.query("select from runs where id = $1 for update", [runId]);
    inside.open();
    await until("it is done again", async () => calls >= 2 || (await isOver(runId)));
    await holder.query("commit");
    await isMovedOnce(runId);
    await worker.stop();
  });

  it("is done again until a revoked right is back, and the log has one line about it", async () => {
    const { logger, warned } = listening();
    const worker = await serve(definitions, { url: limited.href, lease: "1m", logger });
    before.open();
    const runId = await start();
    await until("its transaction is open", inside.entered);
    await sql(`revoke update on runs from ${role}`);
    inside.open();
    await until("it is done again, and again", async () => calls >= 4 || (await isOver(runId)));
    await sql(`grant update on runs to ${role}`);
    await isMovedOnce(runId);
    expect(warned("a transaction was rolled back")).toBe(1);
    await worker.stop();
  });

  it("waits until the login is not refused any more, and the log has one line about it", async () => {
    const { logger, warned } = listening();
    const worker = await serve(definitions, { url: limited.href, lease: "1m", logger });
    const runId = await start();
    await until("it runs", before.entered);
    await sql(`alter role ${role} nologin`);
    before.open();
    inside.open();
    await until("it is refused", async () => warned("a call for a run failed") > 0 || (await isOver(runId)));
    await sql(`alter role ${role} login`);
    await isMovedOnce(runId);
    expect(warned("a call for a run failed")).toBe(1);
    await worker.stop();
  });
});

describe("an outcome without a transaction", () => {
  it("waits until a revoked right is back, and the log has one line about it", async () => {
    const { logger, warned } = listening();
    const counted = { steps: 0, jobs: 0 };
    const running = gate();
    const stepping = workflow({
      name: "stepping",
      run: (ctx) =>
        ctx.step.run(
          "count",
          async () => {
            await running.pass();
            return ++counted.steps;
          },
          once,
        ),
    });
    const working = job({
      name: "working",
      maxAttempts: 1,
      run: async () => {
        await running.pass();
        return ++counted.jobs;
      },
    });
    const worker = await serve([stepping, working], { url: limited.href, lease: "1m", logger });
    const started = [await pawl.start(stepping), await pawl.start(working, null)];
    await until("both run", () => running.entered() === 2);
    await sql(`revoke update on runs from ${role}`);
    running.open();
    await until("both are refused", async () => {
      const isRefused = warned("record failed") > 0 && warned("commit failed") > 0;
      return isRefused || (await isOver(started[0]!.runId)) || (await isOver(started[1]!.runId));
    });
    await sql(`grant update on runs to ${role}`);
    for (const { runId } of started) {
      expect(await pawl.result(runId as never, { timeout: "100s" })).toBe(1);
      expect(await pawl.runs.get(runId)).toMatchObject({ attempt: 0 });
    }
    expect(counted).toEqual({ steps: 1, jobs: 1 });
    expect([warned("record failed"), warned("commit failed")]).toEqual([1, 1]);
    await worker.stop();
  });
});

it("a transaction that changes its own role so that its outcome is refused fails in the end", async () => {
  let tries = 0;
  const disguised = workflow({
    name: "disguised",
    run: (ctx) =>
      ctx.step.transaction(
        "disguise",
        async (tx) => {
          tries++;
          await tx.query("set local role pg_monitor");
          return null;
        },
        once,
      ),
  });
  await serve([disguised]);
  const { runId } = await pawl.start(disguised);
  await expect(pawl.result(runId, { timeout: "100s" })).rejects.toThrow(/permission denied/);
  expect(tries).toBe(6);
});
