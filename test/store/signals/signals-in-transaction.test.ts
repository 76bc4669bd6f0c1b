/** Many signals in one transaction of a caller: what they cost does not grow with their number, and each arrives. */

import { migrate } from "pawl";
import type pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import type { ClaimedRun, StoredSignal } from "../../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../../support/database.js";
import {
  claimOne,
  commit,
  done,
  endRunsAfterEach,
  park,
  register,
  signal,
  start,
} from "../../support/store.js";

const database = await testDatabase();
const { store } = database;
await register(database, "worker");
endRunsAfterEach(database);
const user = await database.connect();
afterEach(() => user.query("rollback"));

const send = (to: pg.Client, runId: string, n: number, name = "go"): Promise<unknown> =>
  to.query("select signal($1::bigint, $2, to_jsonb($3::int))", [runId, name, n]);

/** The whole inbox, as a worker reads it. */
async function inboxOf(run: ClaimedRun): Promise<StoredSignal[]> {
  if (run.inbox !== null) return [...run.inbox];
  const read: StoredSignal[] = [];
  for (let after = 0; after < run.inboxSeq;) {
    const page = await store.inbox(run.runId, { after, upTo: run.inboxSeq });
    if (page.length === 0) break;
    read.push(...page);
    after = page.at(-1)!.seq;
  }
  return read;
}
const payloadsOf = async (run: ClaimedRun): Promise<unknown[]> =>
  (await inboxOf(run)).map(({ payload }) => payload);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

/** How often this transaction has written a run. */
const writes = async (): Promise<number> => {
  const { rows } = await user.query<{ n: string }>(
    "select n_tup_upd as n from pg_stat_xact_user_tables where relname = 'runs' and schemaname = 'pawl'",
  );
  return Number(rows[0]!.n);
};

async function parked(...names: string[]): Promise<string> {
  const [runId] = await start(database, {});
  await commit(database, await claimOne(database), park(names));
  return runId!;
}

describe("signals in one transaction", () => {
  it("write the row of their run a few times, however many they are, and come in order", async () => {
    const runId = await parked("go");
    await user.query("begin");
    for (const n of upTo(1_500)) await send(user, runId, n);
    expect(await writes()).toBeLessThan(20);
    await user.query("commit");
    await signal(database, runId, "go", { payload: "1501" });
    const run = await claimOne(database);
    expect(run).toMatchObject({ runId, timedOut: false });
    expect(await payloadsOf(run)).toEqual(upTo(1_501));
    expect((await inboxOf(run)).every(({ matched }) => matched)).toBe(true);
  });

  it("to several runs in turn are as cheap", async () => {
    const runIds = [await parked("go"), await parked("go"), await parked("go")];
    await user.query("begin");
    for (const n of upTo(200)) for (const runId of runIds) await send(user, runId, n);
    expect(await writes()).toBeLessThan(50);
    await user.query("commit");
    for (const _ of runIds) expect(await payloadsOf(await claimOne(database))).toEqual(upTo(200));
  });

  it("wake their run by the first that it awaits, whichever that is", async () => {
    const runId = await parked("go");
    await user.query("begin");
    for (const n of upTo(10)) await send(user, runId, n, "other");
    await send(user, runId, 11);
    await user.query("commit");
    const run = await claimOne(database);
    expect(run).toMatchObject({ runId, timedOut: false });
    expect((await inboxOf(run)).filter(({ matched }) => matched).map(({ payload }) => payload)).toEqual([11]);
  });

  it("are gone with a savepoint, and those that follow are not", async () => {
    const runId = await parked("go");
    await user.query("begin");
    for (const n of upTo(5)) await send(user, runId, n);
    await user.query("savepoint s");
    for (const n of upTo(20)) await send(user, runId, -n);
    await user.query("rollback to s");
    for (const n of [6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]) await send(user, runId, n);
    await user.query("commit");
    expect(await payloadsOf(await claimOne(database))).toEqual(upTo(16));
  });

  it("to runs of two schemas are told apart, also where their ids are the same", async () => {
    await migrate({ url: database.url, schema: "second" });
    const runId = await parked("go");
    await user.query(
      `insert into second.runs (id, status, name, queue, priority, retention, eligible_at, inserted_at, input)
       values ($1, 'runnable', 'x', 'nobody', 0, '1 d', now(), now(), '1')`,
      [runId],
    );
    await user.query("begin");
    for (const n of upTo(9)) await send(user, runId, n);
    for (const n of upTo(9))
      await user.query("select second.signal($1::bigint, 'go', to_jsonb($2::int))", [runId, n]);
    for (const n of [10, 11]) await send(user, runId, n);
    await user.query("commit");
    expect(await payloadsOf(await claimOne(database))).toEqual(upTo(11));
    const { rows } = await user.query("select payload from second.signals where run_id = $1 order by seq", [
      runId,
    ]);
    expect(rows.map(({ payload }: { payload: number }) => payload)).toEqual(upTo(9));
  });

  it("leave nothing to the next transaction of the connection", async () => {
    const runId = await parked("go");
    await user.query("begin");
    for (const n of upTo(4)) await send(user, runId, -n);
    await user.query("rollback");
    for (const n of upTo(3)) await send(user, runId, n);
    await user.query("begin");
    for (const n of [4, 5, 6, 7]) await send(user, runId, n);
    await user.query("commit");
    expect(await payloadsOf(await claimOne(database))).toEqual(upTo(7));
  });

  it("follow what the step has consumed meanwhile, and what is sent later follows them", async () => {
    const runId = await parked("go");
    await user.query("begin");
    for (const n of upTo(5)) await send(user, runId, n);
    await user.query("commit");
    const first = await claimOne(database);
    const consumed = (await inboxOf(first)).map(({ seq }) => seq);
    const again = await commit(database, first, {
      kind: "keep",
      step: "two",
      state: null,
      consumed,
    });
    expect(again).toMatchObject({ kind: "committed", inboxSeq: null });
    await user.query("begin");
    for (const n of [6, 7, 8]) await send(user, runId, n);
    await user.query("commit");
    expect(await commit(database, first, park("go"), { turn: 1 })).toMatchObject({ kind: "committed" });
    const second = await claimOne(database);
    expect(await payloadsOf(second)).toEqual([6, 7, 8]);
    await commit(database, second, done());
  });

  it("are counted exactly where the inbox is nearly full", async () => {
    const runId = await parked("nothing");
    await database.sql(
      `insert into signals (run_id, seq, name, payload, inserted_at)
       select $1, n, 'go', '{}', clock_timestamp() from generate_series(1, 9990) n`,
      [runId],
    );
    await database.sql("update runs set inbox_seq = 9990 where id = $1", [runId]);
    await user.query("begin");
    for (const n of upTo(10)) await send(user, runId, n);
    await expect(send(user, runId, 11)).rejects.toMatchObject({ code: "PW413" });
  });
});
