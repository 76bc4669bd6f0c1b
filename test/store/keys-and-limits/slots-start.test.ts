import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { aRun, claim, commit, done, register, start } from "../../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
const noRate = { allowed: null, periodMs: null, burst: null };
await store.setLimit({ name: "gpu", concurrent: 3, ...noRate });
await store.setLimit({ name: "rated", concurrent: null, allowed: 1, periodMs: 3_600_000, burst: 2 });

describe("starting runs with a concurrency limit", () => {
  it("inserts the runs beyond the slots as waiting, in one call, and they get their slots in order", async () => {
    const runs = await start(
      database,
      ...Array.from({ length: 8 }, () => ({ options: { concurrency: "gpu:bulk" } })),
    );
    const waiting = await sql<{ id: string }>("select id from runs where hold = 32 order by id");
    expect(waiting.map(({ id }) => id)).toEqual(runs.slice(3));
    const order: string[] = [];
    for (;;) {
      const claimed = await claim(database);
      if (claimed.runs.length === 0) break;
      order.push(...claimed.runs.map(({ runId }) => runId));
      for (const run of claimed.runs) await commit(database, { ...run, claimId: claimed.claimId }, done());
    }
    expect(order).toEqual(runs);
  });

  it("never inserts a run with a concurrency limit already claimed", async () => {
    const runs = [aRun({ options: { concurrency: "gpu" }, direct: true }), aRun({ direct: true })];
    const started = await store.start(runs, {
      allOrNothing: false,
      claim: { workerId: "worker", claimId: "77" },
    });
    expect(started.map(({ phase }) => phase)).toEqual(["runnable", "runnable"]);
  });

  it.each([
    ["nowhere", /no concurrency limit "nowhere"/],
    ["rated", /"rated" has no concurrent/],
  ])("refuses the limit %s", async (concurrency, message) => {
    await expect(start(database, { options: { concurrency } })).rejects.toThrow(message);
    await expect(start(database, { rateLimit: "gpu" })).rejects.toThrow(/"gpu" has no rate/);
  });
});
