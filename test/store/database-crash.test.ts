import { startLocalPostgres } from "@pawl/local-postgres";
import { migrate } from "pawl";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { TestStore } from "../support/test-store.js";
import type { TestDatabase } from "../support/database.js";
import { claimOne, commit, done, keep, register, start } from "../support/store.js";
import { until } from "../support/until.js";

// The log is written out only when a commit demands it, so that an immediate shutdown reliably loses a claim.
const server = await startLocalPostgres({
  settings: { wal_writer_delay: "10s", wal_writer_flush_after: "1GB" },
});
await migrate({ url: server.url });
const store = new TestStore({ url: server.url, schema: "pawl" }, { connections: 2 });
const database: TestDatabase = {
  url: server.url,
  directUrl: server.url,
  store,
  connect: () => Promise.reject(new Error("not used here")),
  sql: async <Row>(text: string, values: unknown[] = []) => {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    try {
      await client.query("set search_path = pawl, public");
      return (await client.query(text, values)).rows as Row[];
    } finally {
      await client.end();
    }
  },
};
afterAll(async () => {
  await store.close();
  await server.stop();
});

const crash = async (): Promise<void> => {
  await server.restart({ mode: "immediate" });
  await until("the server answers", () =>
    database.sql("select").then(
      () => true,
      () => false,
    ),
  );
};

const phaseOf = async (runId: string): Promise<unknown> =>
  (await database.sql<{ status: string }>("select status from runs where id = $1", [runId]))[0]?.status;

/** Claims a run and crashes the server, until the claim's asynchronous commit is gone with the crash. */
async function claimAndCrash(): Promise<{ runId: string; claimId: string }> {
  for (let tries = 0; tries < 10; tries++) {
    await start(database, {});
    const claimed = await claimOne(database);
    await crash();
    if ((await phaseOf(claimed.runId)) === "runnable") return claimed;
    // something else wrote the log out in between: this one was not lost
    await commit(database, claimed, done());
  }
  throw new Error("no claim was ever lost");
}

await register(database, "worker", 3_600_000);
await register(database, "other", 3_600_000);

describe("a crash of the database between claim and commit", () => {
  it.each([
    ["the same worker", "worker"],
    ["another worker", "other"],
  ])("loses the claim but never lets it commit over a later claim of %s", async (_who, workerId) => {
    const lost = await claimAndCrash();
    const { runId } = lost;
    expect(await commit(database, lost, done('"zombie"'))).toEqual({ kind: "stale" });

    const holder = await claimOne(database, { workerId });
    expect(holder.runId).toBe(runId);
    expect(await commit(database, lost, done('"zombie"'))).toEqual({ kind: "stale" });
    expect(await commit(database, lost, keep("zombie"))).toEqual({ kind: "stale" });
    expect(await commit(database, holder, done('"holder"'))).toMatchObject({ kind: "committed" });
    const [row] = await database.sql("select result from runs where id = $1", [runId]);
    expect(row).toEqual({ result: "holder" });
  });

  it("loses no acknowledged start and no acknowledged outcome", async () => {
    const ids = await start(database, {}, {});
    await crash();
    expect(await Promise.all(ids.map(phaseOf))).toEqual(["runnable", "runnable"]);
    const run = await claimOne(database);
    await commit(database, run, done());
    await crash();
    expect(await phaseOf(run.runId)).toBe("done");
    // a resend after the crash is recognised
    expect(await commit(database, run, done())).toMatchObject({ kind: "already" });
  });
});
