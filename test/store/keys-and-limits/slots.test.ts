import { afterEach, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { claim, claimOne, commit, done, keep, next, park, register, retry, signal, start } from "../../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");

afterEach(async () => {
  await sql("delete from runs");
  await sql("delete from slots_to_repair");
});

const limit = (name: string, concurrent: number): Promise<unknown> =>
  sql("select put_limit($1, null, null, null, $2)", [name, concurrent]);
await limit("gpu", 3);

/** Starts runs of a key of a limit. */
async function line(concurrency: string, count: number, given = {}): Promise<string[]> {
  const ids = await start(database, ...Array.from({ length: count }, () => given));
  await sql("update runs set concurrency = $1 where id = any ($2)", [concurrency, ids]);
  return ids;
}
const claimedIds = async (options = {}): Promise<string[]> =>
  (await claim(database, options)).runs.map(({ runId }) => runId);
const ids = async (where: string): Promise<string[]> =>
  (await sql<{ id: string }>(`select id from runs where ${where} order by id`)).map(({ id }) => id);
const holders = (): Promise<string[]> => ids("locked_by is not null");
const claimable = (): Promise<string[]> => ids("hold = 0 and status = 'runnable'");
const waiting = (): Promise<string[]> => ids("hold = 32");

describe("a concurrency limit", () => {
  it("lets as many runs be claimed as it has slots, and takes the others out of the claim index", async () => {
    const runs = await line("gpu", 10);
    expect(await claimedIds()).toEqual(runs.slice(0, 3));
    expect(await claimedIds()).toEqual([]);
    expect(await claimable()).toEqual([]);
    expect(await waiting()).toEqual(runs.slice(3));
    const slots = await sql<{ slot: number }>("select slot from runs where locked_by is not null order by slot");
    expect(slots.map(({ slot }) => slot)).toEqual([1, 2, 3]);
  });

  it("admits the first run in line when a slot is free, and no other", async () => {
    const runs = await line("gpu", 6);
    const { runs: held, claimId } = await claim(database);
    await claim(database);
    for (const [index, run] of held.entries()) {
      await commit(database, { ...run, claimId }, done());
      expect(await claimable()).toEqual(runs.slice(3, 4 + index));
    }
    expect(await claimedIds()).toEqual(runs.slice(3));
  });

  it("has slots of its own for each key", async () => {
    const a = await line("gpu:a", 4);
    const b = await line("gpu:b", 2);
    const none = await start(database, {});
    expect((await claimedIds()).toSorted()).toEqual([...a.slice(0, 3), ...b, ...none].toSorted());
    expect(await waiting()).toEqual(a.slice(3));
  });

  it("counts the runs of all queues and definitions", async () => {
    const here = await line("gpu", 2);
    const there = await line("gpu", 2, { queue: "other" });
    expect(await claimedIds()).toEqual(here);
    await sql("update workers set queues = '{default,other}'");
    expect(await claimedIds({ queue: "other" })).toEqual(there.slice(0, 1));
    expect(await waiting()).toEqual(there.slice(1));
  });
});
