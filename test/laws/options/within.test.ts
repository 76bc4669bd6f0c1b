import { job } from "pawl";
import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";

const database = await testDatabase();
const { pawl } = testEngine(database);

const parked = job({ name: "parked", queue: "nobody", run: () => 0 });
const debounce = { key: "one", delay: "1h" } as const;

it("a debounced start in a transaction that rolls back leaves the run as it was", async () => {
  const first = await pawl.start(parked, 1, { debounce });
  const client = await database.connect();
  await client.query("begin");
  expect(await pawl.within(client).start(parked, 2, { debounce })).toEqual({ ...first, created: false });
  await client.query("rollback");
  expect((await pawl.runs.get(first.runId)).input).toBe(1);
  await client.query("begin");
  await pawl.within(client).start(parked, 3, { debounce, tags: { a: "1" } });
  await client.query("commit");
  expect((await pawl.runs.get(first.runId)).input).toBe(3);
});

it("a debounced start waits for another of its key in an open transaction, and replaces its input", async () => {
  const client = await database.connect();
  await client.query("begin");
  const key = { ...debounce, key: "open" };
  const first = await pawl.within(client).start(parked, 1, { debounce: key, correlationKey: "c" });
  const second = pawl.start(parked, 2, { debounce: key });
  await client.query("commit");
  expect(await second).toEqual({ ...first, created: false });
  expect((await pawl.runs.get(first.runId)).input).toBe(2);
});

it("tags, a deadline and a correlation key are committed with the caller's transaction, signals to the key too", async () => {
  const client = await database.connect();
  await client.query("begin");
  const options = { tags: { kind: "inner" }, timeout: "1h", correlationKey: "within" } as const;
  const { runId } = await pawl.within(client).start(parked, null, options);
  expect((await pawl.signal({ correlationKey: "within" }, "a")).delivered).toEqual([]);
  const sent = await pawl.within(client).signal({ correlationKey: "within" }, "a", { b: 1 });
  expect(sent).toEqual({ delivered: [runId], duplicate: [], full: [] });
  expect(await pawl.runs.find({ correlationKey: "within" })).toEqual([]);
  await client.query("commit");
  const [run] = await pawl.runs.find({ correlationKey: "within" });
  expect(run).toMatchObject({ runId, tags: options.tags, deadlineAt: expect.any(Date) as Date });
});

it("in a serializable transaction, a debounced start over a newer one is a serialization failure", async () => {
  const key = { ...debounce, key: "serial" };
  const { runId } = await pawl.start(parked, 1, { debounce: key });
  const client = await database.connect();
  await client.query("begin isolation level repeatable read");
  await client.query("select 1 from pawl.runs limit 1");
  await pawl.start(parked, 2, { debounce: key });
  await expect(pawl.within(client).start(parked, 3, { debounce: key })).rejects.toMatchObject({
    code: "40001",
  });
  await client.query("rollback");
  expect((await pawl.runs.get(runId)).input).toBe(2);
});
