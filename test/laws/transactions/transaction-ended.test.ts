/**
 * User code that ends the transaction of its step and begins another: the outcome would be recorded
 * without the SQL it belongs to, or that SQL without the outcome. It is noticed before the outcome
 * is written, and the step fails.
 */

import { job, machine, type Transaction, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;
await sql("create table public.ledger (who text not null, part text not null)");

interface Given {
  readonly who: string;
  readonly statements: readonly string[];
}

async function write(tx: Transaction, { who, statements }: Given): Promise<string> {
  await tx.query("insert into public.ledger values ($1, 'before')", [who]);
  for (const statement of statements) await tx.query(statement);
  await tx.query("insert into public.ledger values ($1, 'after')", [who]);
  return "written";
}

const inJob = job({
  name: "in-job",
  maxAttempts: 1,
  run: (ctx, given: Given) => ctx.transaction((tx) => write(tx, given)),
});
const inMachine = machine({
  name: "in-machine",
  steps: {
    start: (ctx) => ctx.transaction(async (tx) => ctx.done(await write(tx, ctx.state as unknown as Given))),
  },
});
const inWorkflow = workflow({
  name: "in-workflow",
  run: (ctx, given: Given) =>
    ctx.step.transaction("write", (tx) => write(tx, given), { retry: { attempts: 1 } }),
});
await serve([inJob, inMachine, inWorkflow]);

const partsOf = async (who: string): Promise<string[]> => {
  const rows = await sql<{ part: string }>("select part from public.ledger where who = $1 order by part", [
    who,
  ]);
  return rows.map(({ part }) => part);
};

describe.each([
  ["step.transaction", async (given: Given) => (await pawl.start(inWorkflow, given)).runId],
  ["ctx.transaction of a job", async (given: Given) => (await pawl.start(inJob, given)).runId],
  ["ctx.transaction of a machine", async (given: Given) => (await pawl.start(inMachine, { ...given })).runId],
])("%s", (name, start) => {
  it.each([
    { statements: ["commit and chain"], stays: ["before"] },
    { statements: ["rollback and chain"], stays: [] },
    { statements: ["commit; begin"], stays: ["before"] },
    { statements: ["rollback; begin"], stays: [] },
    { statements: ["commit", "begin"], stays: ["before"] },
    { statements: ["rollback", "begin isolation level read committed"], stays: [] },
  ])("fails by $statements, and nothing after it is committed", async ({ statements, stays }) => {
    const who = `${name} ${statements.join()}`;
    const runId = await start({ who, statements });
    const failed = await pawl.result(runId as never, { timeout: "100s" }).catch((error: unknown) => error);
    expect(String(failed)).toContain(
      "the transaction was ended by the step itself, which has begun another one",
    );
    expect(String(failed)).toContain("Leave the end to Pawl");
    expect(await pawl.runs.get(runId)).toMatchObject({ status: "failed", output: null });
    expect(await partsOf(who)).toEqual(stays);
    for (const step of await pawl.runs.steps(runId)) expect(step).toMatchObject({ status: "failed" });
  });

  it("takes savepoints, and settings of its own", async () => {
    const who = `${name} savepoint`;
    const statements = [
      "savepoint one",
      "insert into public.ledger select who, 'undone' from public.ledger",
      "rollback to savepoint one",
      "release savepoint one",
      "set local work_mem = '8MB'",
      "reset all",
    ];
    const runId = await start({ who, statements });
    expect(await pawl.result(runId as never, { timeout: "100s" })).toBe("written");
    expect(await partsOf(who)).toEqual(["after", "before"]);
  });
});
