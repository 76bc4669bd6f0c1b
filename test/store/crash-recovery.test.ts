import { afterEach, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { claim, claimOne, commit, done, next, register, start } from "../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");

const endAll = (): Promise<unknown> =>
  sql(
    "update runs set status = 'done', locked_by = null, completed_at = clock_timestamp() where completed_at is null",
  );
afterEach(endAll);

describe("crash recovery", () => {
  const longAgo = async (workerId: string): Promise<void> => {
    await sql("update workers set seen_at = seen_at - interval '2 hours' where id = $1", [workerId]);
    await sql("update settings set beats_since = clock_timestamp() - interval '1 hour'");
  };

  it("returns the runs of a dead worker with attempt and crashes + 1, eligible_at unchanged after the first crash", async () => {
    await register(database, "dead-1");
    const [runId] = await start(database, {});
    await claimOne(database, { workerId: "dead-1" });
    const [before] = await sql("select eligible_at from runs where id = $1", [runId]);
    await longAgo("dead-1");
    expect(await store.reap(100)).toBe(1);
    const [after] = await sql(
      "select status, attempt, crashes, locked_by, eligible_at from runs where id = $1",
      [runId],
    );
    expect(after).toEqual({ status: "runnable", attempt: 1, crashes: 1, locked_by: null, ...before });
  });

  it("puts the run off from its second crash without progress on, and progress starts the count anew", async () => {
    const [runId] = await start(database, {});
    const delays: number[] = [];
    for (const worker of ["dead-2", "dead-3", "dead-4"]) {
      await register(database, worker);
      await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
      await claimOne(database, { workerId: worker });
      await longAgo(worker);
      await store.reap(100);
      const [row] = await sql<{ s: number }>(
        "select extract(epoch from eligible_at - clock_timestamp())::float8 as s from runs where id = $1",
        [runId],
      );
      delays.push(Math.max(0, Math.round(row!.s)));
    }
    expect(delays).toEqual([0, 4, 8]);
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
    await commit(database, await claimOne(database), next("two"));
    const [row] = await sql("select attempt, crashes from runs where id = $1", [runId]);
    expect(row).toEqual({ attempt: 0, crashes: 0 });
  });

  it("does not touch a worker that beats, nor one whose lease has not passed", async () => {
    await register(database, "alive");
    await start(database, {});
    await claimOne(database, { workerId: "alive" });
    await sql("update settings set beats_since = clock_timestamp() - interval '1 hour'");
    expect(await store.reap(100)).toBe(0);
  });

  it("judges nobody before beats have come for a whole lease: after an outage everybody looks dead", async () => {
    await register(database, "after-outage");
    await start(database, {});
    await claimOne(database, { workerId: "after-outage" });
    await longAgo("after-outage");
    await sql("update workers set seen_at = seen_at - interval '2 hours' where id <> 'worker'");
    await sql("update workers set seen_at = seen_at - interval '9 minutes' where id = 'worker'");
    await register(database, "first-after-the-gap", 60_000);
    expect(await store.reap(100)).toBe(0);
    await sql("update settings set beats_since = clock_timestamp() - interval '11 minutes'");
    expect(await store.reap(100)).toBe(1);
  });

  it("takes no worker whose lease is shorter than a second, and says why", async () => {
    const refused = {
      code: "InvalidOption",
      message: expect.stringMatching(/at least 1000 ms, not 999 ms: /) as string,
    };
    await expect(register(database, "hasty", 999)).rejects.toMatchObject(refused);
    expect(await sql("select from workers where id = 'hasty'")).toEqual([]);
    await register(database, "just-so", 1_000);
  });

  it("tells a late heartbeat that its lease has passed", async () => {
    await register(database, "late");
    const beat = (): Promise<{ alive: boolean }[]> => sql("select alive from beat('late', null)");
    expect(await beat()).toEqual([{ alive: true }]);
    await longAgo("late");
    expect(await beat()).toEqual([{ alive: false }]);
  });

  it("frees runs whose worker has no row at all", async () => {
    await register(database, "leaving");
    await start(database, {});
    await claimOne(database, { workerId: "leaving" });
    await sql("delete from workers where id = 'leaving'");
    expect(await store.reap(100)).toBe(1);
  });

  it("a worker that unregisters lets go of what it holds, with the attempts unchanged, and lets the next of its keys in", async () => {
    await register(database, "leaving");
    const [held, behind] = await start(database, { partitionKey: "k" }, { partitionKey: "k" });
    await claimOne(database, { workerId: "leaving" });
    const [cancelled] = await start(database, {});
    await claimOne(database, { workerId: "leaving" });
    await store.cancel(cancelled!, { reason: null, cascade: false });
    expect(await store.unregister("leaving")).toBe(0);
    expect(await sql("select from workers where id = 'leaving'")).toEqual([]);
    const rows = "select id, status, locked_by, attempt, crashes from runs where id = any ($1) order by id";
    const free = { locked_by: null, attempt: 0, crashes: 0 };
    expect(await sql(rows, [[held, behind, cancelled]])).toEqual([
      { id: held, status: "runnable", ...free },
      { id: behind, status: "runnable", ...free },
      { id: cancelled, status: "cancelled", ...free },
    ]);
    expect((await claim(database)).runs.map(({ runId }) => runId)).toEqual([held]);
  });

  it.each([
    ["nothing more is handed over to it", false],
    ["not even what it names", true],
  ])(
    "a worker that unregisters keeps what somebody has locked, and its row for the reaper; %s",
    async (_what, names) => {
      await register(database, "leaving");
      const [locked, free] = await start(database, { partitionKey: "a" }, { partitionKey: "b" });
      const { claimId } = await claim(database, { workerId: "leaving" });
      const [behind] = await start(database, { partitionKey: "a" });
      const other = await database.connect();
      await other.query("begin");
      await other.query("select from runs where id = $1 for update", [locked]);
      expect(await store.unregister("leaving")).toBe(1);
      await other.query("commit");
      expect(await sql("select serves from workers where id = 'leaving'")).toEqual([{ serves: [] }]);
      expect((await claim(database, { workerId: "leaving" })).runs).toEqual([]);
      expect(await sql("select id from runs where locked_by = 'leaving'")).toEqual([{ id: locked }]);
      expect((await claim(database)).runs.map(({ runId }) => runId)).toEqual([free]);
      const nextClaim = { workerId: "leaving", claimId: "77", expected: names ? behind! : null };
      const { verdicts } = await store.commit(
        [
          {
            runId: locked!,
            claimId,
            turn: 0,
            inboxSeq: 0,
            parentId: null,
            partitionKey: "a",
            next: nextClaim,
            transition: { kind: "done", step: null, result: "1" },
          },
        ],
        { patient: true },
      );
      expect(verdicts).toEqual([{ kind: "committed", uniqueLost: false, inboxSeq: null, handed: null }]);
      expect((await claim(database)).runs.map(({ runId }) => runId)).toEqual([behind]);
      expect(await store.unregister("leaving")).toBe(0);
    },
  );

  it("a worker that unregisters does not wait for a transaction of a user that has the key of its run", async () => {
    await register(database, "leaving");
    const [held, queued] = await start(database, { partitionKey: "slow" }, { partitionKey: "slow" });
    await claimOne(database, { workerId: "leaving" });
    const user = await database.connect();
    await user.query("begin");
    await user.query("select cancel($1::bigint, null, false)", [queued]);
    expect(await store.unregister("leaving")).toBe(0);
    await user.query("select cancel($1::bigint, null, false)", [held]);
    await user.query("commit");
    expect(await sql("select from runs where locked_by = 'leaving'")).toEqual([]);
  });

  it("a beat says what the worker holds, with the claim ids, and what was cancelled", async () => {
    await register(database, "holder");
    const [kept, cancelled] = await start(database, {}, {});
    const { claimId } = await claim(database, { workerId: "holder" });
    await sql("update runs set status = 'cancelled' where id = $1", [cancelled]);
    const [row] = await sql<{ cancelled: string; held: string }>("select * from beat('holder', 0)");
    expect(JSON.parse(row!.cancelled)).toEqual({ [cancelled!]: claimId });
    expect(JSON.parse(row!.held)).toEqual({ [kept!]: claimId, [cancelled!]: claimId });
    // letting go of a cancelled run leaves it cancelled
    await store.release([{ runId: cancelled!, claimId }]);
    expect(await sql("select status, locked_by from runs where id = $1", [cancelled])).toEqual([
      { status: "cancelled", locked_by: null },
    ]);
  });

  it("a holder that is neither executing nor cancelled cannot be stored", async () => {
    const [runId] = await start(database, {});
    await expect(sql("update runs set locked_by = 'x' where id = $1", [runId])).rejects.toThrow(
      "runs_holder",
    );
  });
});

describe("retention", () => {
  it("deletes terminal runs past their time with journal and inbox, and nothing else", async () => {
    const [expired, kept, live] = await start(database, {}, {}, {});
    const { claimId } = await claim(database, { limit: 2 });
    for (const runId of [expired!, kept!]) await commit(database, { runId, claimId }, done());
    await sql("insert into signals values ($1, 1, 's', '{}', null, clock_timestamp(), null)", [expired]);
    await sql(
      "insert into steps (run_id, name, kind, seq, output, started_at, completed_at) values ($1, 's', 'run', 1, '1', clock_timestamp(), clock_timestamp())",
      [expired],
    );
    await sql("update runs set expires_at = clock_timestamp() - interval '1 s' where id = $1", [expired]);
    expect((await store.sweep(1_000)).swept).toBe(1);
    expect(await sql("select id from runs where id = any ($1) order by id", [[expired, kept, live]])).toEqual(
      [{ id: kept }, { id: live }],
    );
    expect(await sql("select from signals where run_id = $1", [expired])).toEqual([]);
    expect(await sql("select from steps where run_id = $1", [expired])).toEqual([]);
  });

  it("is clamped to the operator's ceiling at start and counted from the end of the run", async () => {
    await sql("update settings set retention_ceiling = '2 days'");
    const [runId] = await start(database, { retentionMs: 400 * 86_400_000 });
    await commit(database, await claimOne(database), done());
    const [row] = await sql("select (expires_at - completed_at)::text as kept from runs where id = $1", [
      runId,
    ]);
    expect(row).toEqual({ kept: "2 days" });
    await sql("update settings set retention_ceiling = '365 days'");
  });
});
