import { connect } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { readSchemaHealth } from "../../packages/pawl/dist/store/postgres/health.js";
import { judgeBulk, judgeLimits } from "../../packages/server/dist/doctor/operating-findings.js";
import { testDatabase } from "../support/database.js";
import { claim, register, start } from "../support/store.js";

const database = await testDatabase();
const { url, sql, store } = database;
const client = connect(url);
afterAll(() => client.close());

const patience = 600_000;
const health = () => readSchemaHealth({ url, schema: "pawl" });
const limits = async (patienceMs: number) => judgeLimits(await health(), patienceMs);
const bulk = async (patienceMs: number) => judgeBulk(await health(), patienceMs);

describe("pawl doctor", () => {
  it("names the runs that fill a concurrency limit, slots of dead workers, and a limit that nobody has set", async () => {
    await register(database, "worker");
    await client.limits.set("gpu", { concurrent: 1 });
    const options = { concurrency: "gpu" };
    const [first] = await start(database, { options });
    await start(database, { options });
    await claim(database);
    await claim(database);
    expect(await limits(patience)).toMatchObject([{ level: "ok" }]);
    const [full, ...others] = await limits(-1);
    expect(others).toEqual([]);
    expect(full).toMatchObject({ check: "limits", level: "note" });
    expect(full!.text).toMatch(
      new RegExp(`line for the limit "gpu" has waited for .*: 1 of 1 slot is held by run ${first}$`),
    );
    expect(full!.fix).toContain(`pawl runs show ${first}; `);
    expect(full!.fix).toContain("pawl limits set gpu --concurrent 2");

    await client.limits.set("gpu", { concurrent: 2 });
    expect(await limits(-1)).toMatchObject([
      { level: "wrong", text: expect.stringMatching(/although 1 slot is free$/) },
    ]);
    await client.limits.set("gpu", { concurrent: 1 });
    await sql("update workers set seen_at = seen_at - interval '1 day'");
    expect(await limits(patience)).toMatchObject([
      {
        level: "wrong",
        text: `runs wait for the limit "gpu": 1 of its slots is held by runs of dead workers (its holders: run ${first})`,
      },
    ]);
    await sql("delete from limits");
    expect(await limits(patience)).toMatchObject([
      {
        level: "wrong",
        text: '1 run executes with the concurrency limit "gpu", which is not set: any number of them executes at once',
        fix: "set it: pawl limits set gpu --concurrent <number>",
      },
    ]);
    await sql("delete from runs");
    await sql("delete from slots");
    expect(await limits(-1)).toMatchObject([{ level: "ok" }]);
  });

  it("takes a message that waits in a queue for no run", async () => {
    await client.queues.send("mail", { to: "ada" });
    expect(await health()).toMatchObject({ unserved: [], oldestDue: null });
  });

  it("finds a bulk operation that nobody works off, one that waits for a locked run, and one that failed", async () => {
    const { runId } = await client.start("idle");
    const { id } = await client.runs.bulk({ where: { name: "idle" }, action: "cancel" });
    expect(await bulk(patience)).toMatchObject([{ level: "ok", text: "1 bulk operation in progress" }]);
    const [idle] = await bulk(-1);
    expect(idle).toMatchObject({
      level: "wrong",
      fix: `start a worker or a server: they work it off; or stop it: pawl bulk stop ${id}`,
    });
    expect(idle!.text).toMatch(
      new RegExp(
        `^bulk operation ${id} \\(cancel, by local\\) has made no progress for .*: 0 of 1 run is through$`,
      ),
    );

    const other = await database.connect();
    await other.query("begin");
    await other.query("select 1 from runs where id = $1 for update", [runId]);
    while ((await store.workBulk(10)).again);
    expect((await bulk(-1))[0]!.text).toMatch(/; 1 run is locked by other transactions$/);
    await other.query("rollback");

    await sql(`update bulk_operations set filter = filter || '{"colour": "red"}', "cursor" = 0`);
    await sql("delete from bulk_results");
    while ((await store.workBulk(10)).again);
    expect(await bulk(patience)).toMatchObject([{ level: "wrong" }]);
    expect((await bulk(patience))[0]!.text).toMatch(
      /^bulk operation .* failed .* ago after 0 of 1 run: .*the filter "colour"/,
    );
    await sql("update bulk_operations set completed_at = completed_at - interval '2 days'");
    expect(await bulk(patience)).toMatchObject([{ level: "ok" }]);
  });

  it("the gauges of bulk operations say how much is left, and for how long nothing happened", async () => {
    await client.startMany("idle", [{ input: 1 }, { input: 2 }]);
    const { id } = await client.runs.bulk({ where: { name: "idle" }, action: "delete" });
    await sql("update bulk_operations set started_at = started_at - interval '1 hour' where id = $1", [id]);
    const found = async () => (await store.gauges(100)).filter(({ gauge }) => gauge.startsWith("bulk"));
    const before = await found();
    expect(before.map(({ gauge, first }) => [gauge, first]).toSorted()).toEqual([
      ["bulk_idle", "delete"],
      ["bulk_left", "delete"],
    ]);
    expect(before.find(({ gauge }) => gauge === "bulk_left")!.value).toBe(3);
    expect(before.find(({ gauge }) => gauge === "bulk_idle")!.value).toBeGreaterThan(3_500);
    const { batch } = await store.workBulk(2);
    expect(batch).toEqual({
      id,
      action: "delete",
      done: expect.any(Number),
      skipped: expect.any(Number),
      failed: 0,
    });
    expect((await found()).find(({ gauge }) => gauge === "bulk_idle")!.value).toBeLessThan(3_500);
    while ((await store.workBulk(2)).again);
    expect(await found()).toEqual([]);
  });
});
