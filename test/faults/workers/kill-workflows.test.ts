import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { until } from "../../support/until.js";
import { journey } from "../programs/definitions.js";
import { makeFleet, makeLedger } from "../arena/fleet.js";

const database = await testDatabase();
const { sql } = database;
const ledger = await makeLedger();
const pawl = connect(database.url);
const fleet = makeFleet(database.url, ledger.url);
afterAll(async () => {
  await fleet.stop();
  await pawl.close();
});

const count = 300;

it("300 workflows complete with a worker killed by -9 every 300 ms: none lost or stuck, every step recorded once", async () => {
  fleet.replaceTheDead();
  await fleet.grow(3);
  const started = await pawl.startMany(
    journey,
    Array.from({ length: count }, (_, n) => ({ input: { n } })),
  );
  let kills = 0;
  const killing = setInterval(() => {
    if (kills < 40 && fleet.killOne()) kills++;
  }, 300);
  const unfinished = async (): Promise<number> => {
    const [row] = await sql<{ n: number }>(
      "select count(*)::int as n from runs where completed_at is null and name = 'journey'",
    );
    return row!.n;
  };
  // The stragglers wait out their crash delays in peace.
  await until("nearly all have ended", async () => (await unfinished()) < 30, 240_000);
  clearInterval(killing);
  await until("all have ended", async () => (await unfinished()) === 0, 120_000);
  await fleet.stop();
  expect(kills).toBeGreaterThan(5);

  const runs = await sql<{ id: string; status: string; result: unknown }>(
    "select id, status, result from runs where name = 'journey' order by id",
  );
  expect(runs).toEqual(
    started.map(({ runId }, n) => ({
      id: runId,
      status: "done",
      result: { parts: [n, n + 1, n + 2], steps: 5, timeout: null, flaky: 1, last: n * 2 },
    })),
  );
  const journals = await sql<{ names: string; seqs: boolean }>(
    `select string_agg(name, ',' order by name) as names, count(distinct seq) = count(*) as seqs
     from steps where completed_at is not null group by run_id`,
  );
  expect(journals).toHaveLength(count);
  expect(new Set(journals.map(({ names }) => names))).toEqual(
    new Set(["first,flaky,last,nap,never,part-0,part-1,part-2,walk"]),
  );
  expect(journals.every(({ seqs }) => seqs)).toBe(true);
  // one child each, and no reply left behind
  expect(
    await sql("select parent_id from runs where name = 'linear' group by 1 having count(*) <> 1"),
  ).toEqual([]);
  expect(await sql("select from signals")).toEqual([]);
  expect(await sql("select from runs where locked_by is not null")).toEqual([]);
}, 400_000);
