import { job } from "pawl";
import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const start = async (concurrency: unknown): Promise<string> => {
  const options = JSON.stringify({ concurrency, queue: "default" });
  const [row] = await sql<{ id: string }>("select start_with('render', null, $1)::text as id", [options]);
  return row!.id;
};

it("start_with takes a concurrency limit, with or without a key, and refuses one that is not set", async () => {
  const held = gate();
  const render = job({ name: "render", run: () => held.pass().then(() => null) });
  await pawl.limits.set("per-tenant", { concurrent: 1 });
  await serve([render]);
  const first = await start("per-tenant:acme");
  await until("it executes", async () => held.entered() === 1);
  const second = await start("per-tenant:acme");
  const other = await start("per-tenant:globex");
  await until("the other tenant executes", async () => held.entered() === 2);
  await until("it waits", async () => (await pawl.why(second)).reason === "limit_full");
  expect(await pawl.why(second)).toMatchObject({ concurrency: "per-tenant:acme", holders: [first] });
  held.open();
  for (const runId of [first, second, other]) await pawl.result(runId);
  await expect(start("cpu")).rejects.toThrow(/there is no concurrency limit "cpu"/);
  await expect(start("")).rejects.toThrow(/concurrency limit/);
});
