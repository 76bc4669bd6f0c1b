import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { claim, claimOne, commit, done, keep, next, register, retry, start } from "../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
await register(database, "other");

describe("the claim guard", () => {
  it("lets the claim that holds a run commit, turn by turn", async () => {
    await start(database, {});
    const run = await claimOne(database);
    expect(await commit(database, run, keep("two", '{"n":1}'))).toMatchObject({ kind: "committed" });
    expect(await commit(database, run, keep("three"), { turn: 1 })).toMatchObject({ kind: "committed" });
    expect(await commit(database, run, done('"ok"'), { turn: 2 })).toMatchObject({ kind: "committed" });
    const [row] = await sql(
      "select status, step, state, result, locked_by, attempt from runs where id = $1",
      [run.runId],
    );
    expect(row).toEqual({
      status: "done",
      step: "three",
      state: { n: 1 },
      result: "ok",
      locked_by: null,
      attempt: 0,
    });
  });

  it("commits nothing for a stale worker", async () => {
    await start(database, {});
    const stale = await claimOne(database);
    await store.release([stale]);
    const holder = await claimOne(database, { workerId: "other" });
    expect(holder.runId).toBe(stale.runId);
    expect(await commit(database, stale, done())).toEqual({ kind: "stale" });
    expect(await commit(database, holder, keep("two"))).toMatchObject({ kind: "committed" });
    expect(await commit(database, stale, keep("wrong"), { turn: 1 })).toEqual({ kind: "stale" });
    const [row] = await sql("select status, step from runs where id = $1", [holder.runId]);
    expect(row).toEqual({ status: "executing", step: "two" });
    await commit(database, holder, done(), { turn: 1 });
  });

  it("holds for more than 2^31 steps of one claim", async () => {
    await start(database, {});
    const run = await claimOne(database);
    const turn = 2 ** 31 - 1;
    await sql("update runs set turn = $2 where id = $1", [run.runId, turn]);
    expect(await commit(database, run, keep("two"), { turn })).toMatchObject({ kind: "committed" });
    expect(await commit(database, run, keep("two"), { turn })).toMatchObject({ kind: "already" });
    expect(await commit(database, run, keep("three"), { turn: turn + 1 })).toMatchObject({
      kind: "committed",
    });
    expect(await commit(database, run, done(), { turn: turn + 2 })).toMatchObject({ kind: "committed" });
  });

  it("lets runs go on whose attempts or crashes cannot be counted any further", async () => {
    const most = 2 ** 31 - 1;
    await start(database, {});
    let run = await claimOne(database);
    await sql("update runs set attempt = $2, crashes = $2 where id = $1", [run.runId, most]);
    expect(await commit(database, run, retry())).toMatchObject({ kind: "committed" });
    await register(database, "dying");
    run = await claimOne(database, { workerId: "dying" });
    expect(run).toMatchObject({ attempt: most, crashes: most });
    await sql("delete from workers where id = 'dying'");
    expect(await store.reap(100)).toBe(1);
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [run.runId]);
    run = await claimOne(database);
    expect(run).toMatchObject({ attempt: most, crashes: most });
    expect(await commit(database, run, done())).toMatchObject({ kind: "committed" });
  });

  it("is held by the claim id, not by the worker: the same worker's older claim is stale too", async () => {
    await start(database, {});
    const older = await claimOne(database);
    await store.release([older]);
    const newer = await claimOne(database);
    expect(await commit(database, older, done())).toEqual({ kind: "stale" });
    expect(await commit(database, newer, done())).toMatchObject({ kind: "committed" });
  });

  it("recognises a resend after a lost reply and applies it once", async () => {
    await start(database, {});
    const run = await claimOne(database);
    await commit(database, run, keep("two", '{"n":1}'));
    expect(await commit(database, run, keep("two", '{"n":1}'))).toMatchObject({ kind: "already" });
    await commit(database, run, retry(0), { turn: 1 });
    expect(await commit(database, run, retry(0), { turn: 1 })).toMatchObject({ kind: "already" });
    const [row] = await sql("select attempt, turn::int from runs where id = $1", [run.runId]);
    expect(row).toEqual({ attempt: 1, turn: 2 });
    const again = await claimOne(database);
    expect(await commit(database, run, retry(0), { turn: 1 })).toEqual({ kind: "stale" });
    await commit(database, again, done());
    expect(await commit(database, again, done())).toMatchObject({ kind: "already" });
  });

  it("refuses an outcome whose turn has not come", async () => {
    await start(database, {});
    const run = await claimOne(database);
    expect(await commit(database, run, done(), { turn: 1 })).toEqual({ kind: "stale" });
    expect(await commit(database, run, done())).toMatchObject({ kind: "committed" });
  });

  it("makes terminal final", async () => {
    await start(database, {});
    const run = await claimOne(database);
    await commit(database, run, done('"first"'));
    expect(await commit(database, run, next("again"), { turn: 1 })).toEqual({ kind: "stale" });
    expect(await store.release([run])).toEqual([]);
    expect((await claim(database)).runs).toEqual([]);
    const [row] = await sql("select status, result from runs where id = $1", [run.runId]);
    expect(row).toEqual({ status: "done", result: "first" });
  });

  it("releases only what the claim still holds, with the attempt unchanged", async () => {
    const [runId] = await start(database, {});
    const run = await claimOne(database);
    expect(await store.release([{ runId: runId!, claimId: "12345" }])).toEqual([]);
    expect(await store.release([run])).toEqual([runId]);
    expect(await store.release([run])).toEqual([]);
    const [row] = await sql("select status, attempt, crashes, locked_by from runs where id = $1", [runId]);
    expect(row).toEqual({ status: "runnable", attempt: 0, crashes: 0, locked_by: null });
    await commit(database, await claimOne(database), done());
  });

  it("keeps the claim without touching an index: such updates are heap-only", async () => {
    await start(database, {});
    const run = await claimOne(database);
    const counters = (): Promise<{ all: string; hot: string }[]> =>
      sql(
        "select n_tup_upd as all, n_tup_hot_upd as hot from pg_stat_xact_user_tables where relname = 'runs'",
      );
    await sql("begin");
    const [before] = await counters();
    for (let turn = 0; turn < 10; turn++) {
      await sql(
        "select commit(array[$1]::bigint[], array[$2]::bigint[], array[$3]::int[], array['keep'], array['step'], array['{}'], null, null, null, null, null, null, null, null, null, null, true)",
        [run.runId, run.claimId, turn],
      );
    }
    const [after] = await counters();
    await sql("rollback");
    expect(Number(after!.all) - Number(before!.all)).toBe(10);
    expect(Number(after!.hot) - Number(before!.hot)).toBe(10);
    await commit(database, run, done());
  });
});
