import { workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { shortLease, testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { journalOf, suspended } from "../../support/journal.js";
import { proxyTo } from "../../support/proxies/proxy.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

describe("an outage", () => {
  it("shorter than the lease only delays what is recorded: no step runs twice, the body goes on in place", async () => {
    const proxy = await proxyTo(database.url);
    const running = gate();
    const called: string[] = [];
    const patient = workflow({
      name: "patient",
      run: async ({ step }) => {
        called.push("body");
        await step.run("one", async () => (called.push("one"), running.pass()));
        const both = await Promise.all([
          step.run("two", () => (called.push("two"), 2)),
          step.sleep("nap", 0).then(() => 0),
        ]);
        return both;
      },
    });
    await serve([patient], { url: proxy.url, lease: "1m" });
    const { runId } = await pawl.start(patient);
    await until("it runs", running.entered);
    proxy.cut();
    running.open();
    // The step has returned; what came of it cannot be written yet.
    await new Promise((resolve) => setImmediate(resolve));
    expect(await journalOf(database, runId)).toEqual([]);
    proxy.restore();
    expect(await pawl.result(runId)).toEqual([2, 0]);
    expect(called).toEqual(["body", "one", "two"]);
  });

  it("longer than the lease: steps are aborted, what they return is dropped, and the run goes on elsewhere", async () => {
    const proxy = await proxyTo(database.url);
    const running = gate();
    const calls: { worker: string; signal: AbortSignal }[] = [];
    const make = (worker: string) =>
      workflow({
        name: "overtaken",
        run: async ({ step }) => {
          await step.run("first", () => "recorded");
          return step.run("long", async ({ signal }) => {
            calls.push({ worker, signal });
            if (worker === "cut off") await running.pass();
            return worker;
          });
        },
      });
    await serve([make("cut off")], { url: proxy.url, ...shortLease });
    const { runId } = await pawl.start("overtaken");
    await until("it runs", running.entered);
    proxy.cut();
    await until("its step is aborted", () => calls[0]!.signal.aborted);
    await serve([make("elsewhere")]);
    expect(await pawl.result(runId)).toBe("elsewhere");
    running.open();
    proxy.restore();
    expect(calls.map(({ worker }) => worker)).toEqual(["cut off", "elsewhere"]);
    expect(await journalOf(database, runId)).toMatchObject([{ output: "recorded" }, { output: "elsewhere" }]);
  });
});

it("a suspended workflow does not hold its partition key; an executing one does", async () => {
  const first = gate();
  const order: string[] = [];
  const keyed = workflow({
    name: "keyed",
    run: async ({ step }, name: string) => {
      await step.run("before", async () => {
        order.push(`${name} in`);
        if (name === "a") await first.pass();
        order.push(`${name} out`);
      });
      await step.waitForEvent("go");
      return name;
    },
  });
  await serve([keyed]);
  const a = await pawl.start(keyed, "a", { partitionKey: "k" });
  await until("a runs", first.entered);
  const b = await pawl.start(keyed, "b", { partitionKey: "k" });
  const [row] = await sql<{ locked_by: string | null }>("select locked_by from runs where id = $1", [
    b.runId,
  ]);
  expect(row!.locked_by).toBeNull();
  first.open();
  for (const { runId } of [a, b]) await suspended(database, runId);
  expect(order).toEqual(["a in", "a out", "b in", "b out"]);
  for (const { runId } of [b, a]) await pawl.signal(runId, "go", {});
  expect([await pawl.result(a.runId), await pawl.result(b.runId)]).toEqual(["a", "b"]);
});
