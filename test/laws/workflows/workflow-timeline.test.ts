/**
 * A failover to a standby that had not got everything: the database goes on, on another timeline, without the last of what it has acknowledged.
 * Here the same is done by hand: what was recorded last is deleted, and the timeline that the schema knows is made another.
 */

import { job, machine, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { journalOf } from "../../support/journal.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;
await sql("create table public.moved (run_id text)");

const timeline = async (): Promise<unknown> => (await sql("select timeline from settings"))[0];
const actual = await timeline();
/** The rest of what is lost is deleted by the test. */
const failOver = async (): Promise<unknown> => sql("update settings set timeline = 'before'");

describe("a workflow whose database went on without what it has recorded", () => {
  it("does not wait for a child that is lost: it is run again, and starts another", async () => {
    const running = gate();
    const child = job({ name: "child", queue: "nobody", run: () => "from the child" });
    const parent = workflow({
      name: "parent",
      run: async ({ step }) => {
        const [output] = await Promise.all([
          step.invoke("child", child),
          step.run("beside", () => running.pass()),
        ]);
        return output;
      },
    });
    const worker = await serve([parent]);
    const { runId } = await pawl.start(parent);
    await until("it runs", running.entered);
    const [lost] = await until("its child is there", async () => {
      const rows = await sql<{ id: string }>("select id from runs where parent_id = $1", [runId]);
      return rows.length === 1 ? rows : null;
    });
    await sql("delete from runs where id = $1", [lost!.id]);
    await sql("delete from steps where run_id = $1", [runId]);
    await failOver();
    running.open();
    const [other] = await until("there is another child", async () => {
      const rows = await sql<{ id: string }>("select id from runs where parent_id = $1", [runId]);
      return rows.length === 1 ? rows : null;
    });
    expect(other!.id).not.toBe(lost!.id);
    await serve([child]);
    expect(await pawl.result(runId)).toBe("from the child");
    // No attempt, and no crash: nothing of it was its fault.
    expect(await pawl.runs.get(runId)).toMatchObject({ status: "completed", attempt: 0 });
    expect(await timeline()).toEqual(actual);
    await worker.stop();
  });

  it("is not completed over a transaction that is lost: that is done again", async () => {
    const running = gate();
    const moving = workflow({
      name: "moving",
      run: async ({ step, runId }) => {
        await step.transaction("move", async (tx) => {
          await tx.query("insert into public.moved values ($1)", [runId]);
        });
        // Not a step: the next that the database hears of it is its end.
        await running.pass();
        return "moved";
      },
    });
    await serve([moving]);
    const { runId } = await pawl.start(moving);
    await until("it has moved", running.entered);
    await sql("delete from public.moved where run_id = $1", [runId]);
    await sql("delete from steps where run_id = $1", [runId]);
    await failOver();
    running.open();
    expect(await pawl.result(runId)).toBe("moved");
    expect(await sql("select from public.moved where run_id = $1", [runId])).toHaveLength(1);
    expect(await journalOf(database, runId)).toMatchObject([{ name: "move", completed: true }]);
  });

  it("is not recorded by a transaction that was open meanwhile: that is rolled back and done again", async () => {
    const running = gate();
    let calls = 0;
    const open = workflow({
      name: "open",
      run: async ({ step, runId }) =>
        step.transaction("move", async (tx) => {
          await tx.query("insert into public.moved values ($1)", [runId]);
          if (++calls === 1) await running.pass();
          return calls;
        }),
    });
    await serve([open]);
    const { runId } = await pawl.start(open);
    await until("its transaction is open", running.entered);
    await failOver();
    running.open();
    expect(await pawl.result(runId)).toBe(2);
    expect(await sql("select from public.moved where run_id = $1", [runId])).toHaveLength(1);
  });

  it("sees a signal that comes under the number of one that is lost", async () => {
    const running = gate();
    const listening = workflow({
      name: "listening",
      run: async ({ step }) => {
        const first = step.waitForEvent("first");
        await step.run("before", () => running.pass());
        return first;
      },
    });
    await serve([listening]);
    const { runId } = await pawl.start(listening);
    await until("it runs", running.entered);
    await until("it waits", async () => (await journalOf(database, runId)).length === 1);
    await pawl.signal(runId, "other", {});
    await until(
      "the worker has heard of it",
      async () =>
        (
          await sql(
            "select from pg_stat_activity where query like '%inbox_seqs%' and pid <> pg_backend_pid()",
          )
        ).length > 0,
    );
    await sql("delete from signals where run_id = $1", [runId]);
    await sql("update runs set inbox_seq = 0 where id = $1", [runId]);
    await failOver();
    await pawl.signal(runId, "first", { n: 1 });
    running.open();
    expect(await pawl.result(runId)).toEqual({ n: 1 });
  });
});

it("the claims of jobs and machines outlive a failover: their turn tells whether anything is missing", async () => {
  const running = gate();
  const calls: string[] = [];
  const walker = machine({
    name: "walker",
    steps: {
      start: (ctx) =>
        ctx.transaction(async () => {
          calls.push(ctx.step);
          await running.pass();
          return ctx.next("end", ctx.state);
        }),
      end: (ctx) => {
        calls.push(ctx.step);
        return ctx.done("there");
      },
    },
  });
  await serve([walker]);
  const { runId } = await pawl.start(walker, {});
  await until("it runs", running.entered);
  await failOver();
  running.open();
  expect(await pawl.result(runId)).toBe("there");
  expect(calls).toEqual(["start", "end"]);
});
