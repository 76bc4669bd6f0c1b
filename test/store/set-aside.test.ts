import { afterEach, describe, expect, it } from "vitest";
import { readSchemaHealth } from "../../packages/pawl/dist/store/postgres/health.js";
import { testDatabase } from "../support/database.js";
import { aCommit, claim, claimOne, commit, done, register, start } from "../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
afterEach(async () => {
  await sql("delete from runs");
  await sql("delete from left_keys");
});

const ids = ({ runs }: { runs: readonly { runId: string }[] }): string[] => runs.map(({ runId }) => runId);

describe("a time that cannot be reckoned with", () => {
  it.each([
    "start('counter', at => '-infinity')",
    "start('counter', at => 'infinity')",
    "start('counter', at => '1500-01-01')",
    "start('counter', at => '20000-01-01')",
    "start('counter', delay => '-1 s')",
    "start('counter', delay => '2000 years')",
    "start('counter', retention => '2000 years')",
    "send('mail', '1', delay => '2000 years')",
  ])("is refused: select pawl.%s", async (call) => {
    await expect(sql(`select pawl.${call}`)).rejects.toMatchObject({ code: "PW422" });
    expect(await sql("select from runs")).toEqual([]);
  });

  it.each(["-infinity", "0001-01-01", "1600-01-01 BC"])(
    "and is in a row nevertheless (%s) keeps nobody waiting, and is itself claimed",
    async (at) => {
      const [odd, plain] = await start(database, {}, {});
      await sql("update runs set eligible_at = $1 where id = $2", [at, odd]);
      const gauges = await store.gauges(100);
      expect(gauges.find(({ gauge }) => gauge === "depth")?.value).toBe(2);
      expect((await readSchemaHealth({ url: database.url, schema: "pawl" })).oldestDue?.runId).toBe(odd);
      expect((await store.why(odd!))?.eligibleAt).toContain("1700");
      const found = await claim(database, { limit: 1 });
      expect(ids(found)).toEqual([odd]);
      expect(ids(await claim(database, { floor: found.floor }))).toEqual([plain]);
    },
  );

  it("keeps nobody waiting behind the run before it in its key", async () => {
    const partitionKey = "k";
    const [first, odd] = await start(database, { partitionKey, priority: -1 }, { partitionKey });
    await sql("update runs set eligible_at = '-infinity' where id = $1", [odd]);
    await store.cancel(first!, { reason: null, cascade: false });
    const run = await claimOne(database);
    expect(run.runId).toBe(odd);
    const [next] = await start(database, { partitionKey });
    await commit(database, run, done());
    expect(ids(await claim(database))).toEqual([next]);
  });
});

describe("a run that cannot be claimed", () => {
  /** Its answer cannot be made: the number of its children is none. */
  const spoil = (runId: string): Promise<unknown> =>
    sql(`update runs set awaits = '{"children": "many"}' where id = $1`, [runId]);

  it("is set aside and told; the others of its queue are claimed", async () => {
    const [first, bad, last] = await start(database, {}, {}, {});
    await spoil(bad!);
    const found = await claim(database);
    expect(found).toMatchObject({ runs: [], more: true });
    expect(found.setAside).toEqual([
      { runId: bad, code: "22P02", message: 'invalid input syntax for type integer: "many"' },
    ]);
    expect(ids(await claim(database))).toEqual([first, last]);
    const { hold, error } = (await store.why(bad!))!;
    expect([hold, error]).toMatchObject([8, { name: "ClaimFailed", code: "22P02" }]);
    expect((await readSchemaHealth({ url: database.url, schema: "pawl" })).setAside).toMatchObject([
      { runId: bad, code: "22P02" },
    ]);
  });

  it("is set aside wherever it stands in the order of the queue", async () => {
    const [first, bad] = await start(database, { priority: -1 }, { priority: 3 });
    const [other, worse] = await start(database, { version: 2 }, { version: 2 });
    const [plain, spoilt] = await start(database, {}, { priority: 1 });
    for (const runId of [bad, worse, spoilt]) await spoil(runId!);
    const served = { names: ["counter", "counter"], versions: [1, 2] };
    const told = (await claim(database, served)).setAside ?? [];
    expect(told.map(({ runId }) => runId).toSorted()).toEqual([bad, worse, spoilt].toSorted());
    expect(ids(await claim(database, served))).toEqual([first, other, plain]);
  });

  it("does not take along a run that waits for somebody's open transaction", async () => {
    const [bad, waiting, other] = await start(database, {}, { partitionKey: "k" }, {});
    await spoil(bad!);
    const holder = await database.connect();
    await holder.query("begin");
    await holder.query(
      "update runs set partition_key = 'k', status = 'executing', locked_by = 'other' where id = $1",
      [other],
    );
    expect((await claim(database)).setAside).toMatchObject([{ runId: bad }]);
    await holder.query("rollback");
    await holder.end();
    expect(ids(await claim(database))).toEqual([waiting, other]);
  });

  it("is claimed once it is mended, and can be cancelled", async () => {
    const [bad, worse] = await start(database, {}, {});
    await spoil(bad!);
    await spoil(worse!);
    expect((await claim(database)).setAside).toHaveLength(2);
    await sql("update runs set awaits = null, hold = hold & ~8 where id = $1", [bad]);
    expect(ids(await claim(database))).toEqual([bad]);
    expect(await store.cancel(worse!, { reason: null, cascade: false })).toMatchObject({
      verdict: "cancelled",
    });
  });

  it("is in line for its key no longer", async () => {
    const partitionKey = "k";
    const [bad, next] = await start(database, { partitionKey }, { partitionKey });
    await spoil(bad!);
    expect((await claim(database)).setAside).toMatchObject([{ runId: bad }]);
    await store.repairKeys(null, 100);
    const run = await claimOne(database);
    expect(run.runId).toBe(next);
    await store.commit([aCommit(run, done())], { patient: true });
  });

  it("leaves the error as it is where no run is the cause", async () => {
    await start(database, {});
    await sql("alter function pawl.journal_inline(bigint, int) rename to gone");
    await sql("update runs set kind = 'workflow'");
    await sql("insert into steps (run_id, name, kind, started_at) select id, 'one', 'run', now() from runs");
    await expect(claim(database)).rejects.toThrow("journal_inline");
    await sql("alter function pawl.gone(bigint, int) rename to journal_inline");
    expect((await claim(database)).runs).toHaveLength(1);
    await sql("delete from steps");
  });
});
