/**
 * While an old transaction is open, vacuum takes nothing away: every index keeps an entry for each run that has ended since. What
 * every worker does again and again must not walk over all of them. By the count of buffers that a call touches.
 */

import { beforeAll, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { claim, register, start } from "../../support/store.js";

const database = await testDatabase();
const { sql, store } = database;
const ended = 20_000;
/** The pages of a few index searches; a walk over what has ended touches many hundreds, though such rows lie close together here. */
const few = 100;

/** How many pages a call touches, those of the statements inside it included, once its plans are made. */
async function buffersOf(call: string): Promise<number> {
  await sql(call);
  const [row] = await sql<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
    `explain (analyze, buffers, format json) ${call}`,
  );
  const { Plan } = row!["QUERY PLAN"][0];
  return Plan["Shared Hit Blocks"]! + Plan["Shared Read Blocks"]!;
}

/** Adds runs with the given columns, numbered from `from` on. */
const addRuns = (from: number, count: number, columns: string, values: string): Promise<unknown> =>
  sql(`insert into runs (id, name, queue, priority, kind, eligible_at, inserted_at, retention, input, ${columns})
    select (${from} + i)::bigint << 6, 'counter', 'default', 0, 'machine', clock_timestamp(), clock_timestamp(), '1 day', '{}', ${values}
    from generate_series(1, ${count}) i`);

beforeAll(async () => {
  await sql("alter table runs set (autovacuum_enabled = off)");
  await sql("update settings set beats_since = clock_timestamp() - interval '1 day'");
  for (const worker of ["a", "m", "z"]) await register(database, worker);
  const old = await database.connect();
  await old.query("begin isolation level repeatable read");
  await old.query("select count(*) from runs");
  // Claimed by one of the workers, and ended.
  await addRuns(1_000_000, ended, "status, locked_by, claim_id", "'executing', 'm', i");
  await sql(
    "update runs set status = 'done', locked_by = null, completed_at = clock_timestamp() where locked_by = 'm'",
  );
});

it("a beat that asks for nothing but what was cancelled touches few pages", async () => {
  expect(await buffersOf("select * from beat('m', null)")).toBeLessThan(few);
});

it("a beat that asks for the latest claims touches few pages", async () => {
  expect(await buffersOf(`select * from beat('m', ${ended})`)).toBeLessThan(few);
});

it("the look for dead workers, unserved runs and blocked keys touches few pages", async () => {
  expect(await buffersOf("select * from recover(1000, true, null)")).toBeLessThan(few);
  expect(await buffersOf("select * from reap(1000)")).toBeLessThan(few);
});

it("a look for work that begins at the low-water mark touches few pages, and one without it many", async () => {
  // Each was runnable, due a moment after the other, and then ended.
  await addRuns(4_000_000, ended, "status", "'runnable'");
  await sql(
    "update runs set eligible_at = clock_timestamp() - interval '1 hour' + (id >> 6) * interval '1 microsecond' where status = 'runnable'",
  );
  await sql("update runs set status = 'done', completed_at = clock_timestamp() where status = 'runnable'");
  const look = (floor: string, bounded: boolean): string =>
    `select * from claim('default', 'a', 1, 10, '{counter}', '{1}', ${floor}, ${bounded})`;
  const now = "0::smallint, (extract(epoch from clock_timestamp()) * 1000000)::bigint";
  expect(await buffersOf(look(now, true))).toBeLessThan(few);
  expect(await buffersOf(look("null, null", false))).toBeGreaterThan(few);
});

it("a look that begins at the mark does not see what lies before it, one that is not bounded does", async () => {
  const [runId] = await start(database, {});
  const floor = [0, (Date.now() + 60_000) * 1_000] as const;
  const look = { queue: "default", limit: 10, names: ["counter"], versions: [1], floor };
  const request = { ...look, workerId: "a", claimId: "4711" };
  expect((await store.claim({ ...request, bounded: true })).runs).toEqual([]);
  expect((await store.claim(request)).runs.map((run) => run.runId)).toEqual([runId]);
});

it("a claim that is left alone among them is found", async () => {
  await start(database, {});
  await claim(database, { workerId: "z" });
  await sql("delete from workers where id = 'z'");
  expect(await store.recover({ limit: 10, repairs: false, marks: null })).toMatchObject({ reaped: 0 });
  expect(await store.recover({ limit: 10, repairs: true, marks: null })).toMatchObject({
    reaped: 1,
    again: true,
  });
});

it("to place many runs does not walk again over those that are placed", async () => {
  await addRuns(2_000_000, ended + 100, "status, hold", "'runnable', 2");
  await sql("update runs set hold = 0 where hold = 2 and id <= (2000000 + $1)::bigint << 6", [ended]);
  const [first] = await sql<{ last: string }>("select * from place_runs(2)");
  expect(JSON.parse(first!.last)).toEqual(["counter", 1, String((2_000_000 + ended + 2) * 64)]);
  expect(await buffersOf(`select * from place_runs(2, '${first!.last}')`)).toBeLessThan(few);
});

it("to delete many runs does not walk again over those that are deleted", async () => {
  const past = "clock_timestamp() - interval '2 hours' + i * interval '1 millisecond'";
  await addRuns(3_000_000, ended + 100, "status, completed_at, expires_at", `'done', ${past}, ${past}`);
  await sql("delete from runs where id > 3000000::bigint << 6 and id <= (3000000 + $1)::bigint << 6", [
    ended,
  ]);
  // As if roll_up had counted them: sweep counts those that it has not.
  await sql("update series_cursor set started_id = 4000000::bigint << 6, ended_at = clock_timestamp()");
  const { swept, last } = await store.sweep(2);
  expect(swept).toBe(2);
  expect(await buffersOf(`select * from sweep(2, ${last})`)).toBeLessThan(few);
  expect(await store.sweep(1_000, last)).toEqual({ swept: 94, last: null });
});
