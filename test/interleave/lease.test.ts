/** The pair of heartbeat and reap at the instant at which it matters: the lease passes while the beat is in flight. */

import { expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { claimOne, commit, done, register, start } from "../support/store.js";
import { until } from "../support/until.js";
import { interleave } from "./barrier.js";
import { connectionsTo } from "./connections.js";

const database = await testDatabase();
const connections = await connectionsTo(database);
const barrier = {
  first: await connections.open(),
  second: await connections.open(),
  observer: await connections.open(),
};
await register(database, "live");
await database.sql("update settings set beats_since = clock_timestamp() - interval '1 day'");

/** A worker beats in time, and a reaper looks when its lease would have passed without that beat. */
async function beatAtTheLastMoment(workerId: string, end: "commits" | "rolls back") {
  await register(database, workerId);
  await start(database, {});
  const run = await claimOne(database, { workerId });
  await database.sql(
    "update workers set seen_at = clock_timestamp() - lease + interval '300 ms' where id = $1",
    [workerId],
  );
  const { first, second } = await interleave(barrier, end, {
    first: () => barrier.first.query("select alive from beat($1, null)", [workerId]),
    second: async () => {
      await until("the lease has passed, for all but the beat", async () => {
        const rows = await database.sql(
          "select from workers where id = $1 and seen_at + lease < clock_timestamp()",
          [workerId],
        );
        return rows.length > 0;
      });
      return barrier.second.store.reap(100);
    },
  });
  expect(first).toEqual([{ alive: true }]);
  expect(second, "reaped while the beat is in flight").toBe(0);
  return run;
}

it("a beat in flight when the lease passes counts, once it is committed", async () => {
  const run = await beatAtTheLastMoment("beating", "commits");
  expect(await database.store.reap(100)).toBe(0);
  expect(await commit(database, run, done())).toMatchObject({ kind: "committed" });
});

it("a beat in flight when the lease passes does not count if it is rolled back", async () => {
  const run = await beatAtTheLastMoment("failing", "rolls back");
  expect(await database.store.reap(100)).toBe(1);
  expect(await commit(database, run, done())).toEqual({ kind: "stale" });
});
