import { afterEach, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { aRun, claim, claimOne, commit, done, key, next, register, retry, start } from "../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");

const endAll = (): Promise<unknown> =>
  sql(
    "update runs set status = 'done', locked_by = null, completed_at = clock_timestamp() where completed_at is null",
  );
afterEach(endAll);

const idsOf = ({ runs }: { runs: readonly { runId: string }[] }): string[] => runs.map(({ runId }) => runId);

describe("scheduling", () => {
  it("claims by priority, then eligible_at, then id", async () => {
    const early = new Date(Date.now() - 60_000);
    const [a, b, c, d, e] = await start(
      database,
      { priority: 5 },
      { priority: -3 },
      { priority: 0 },
      { priority: 0, at: early },
      { priority: 0 },
    );
    expect(idsOf(await claim(database))).toEqual([b, d, c, e, a]);
  });

  it("separates queues", async () => {
    const [, mail] = await start(database, {}, { queue: "mail" });
    expect(idsOf(await claim(database, { queue: "mail" }))).toEqual([mail]);
  });

  it("claims a delayed run not before its time and says when that is", async () => {
    const [runId] = await start(database, { delayMs: 150 });
    const { runs, dueMs } = await claim(database);
    expect(runs).toEqual([]);
    expect(dueMs).toBeGreaterThan(0);
    expect(dueMs).toBeLessThanOrEqual(150);
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
    expect(idsOf(await claim(database))).toEqual([runId]);
  });

  it("claims only what the worker serves; the rest stays runnable", async () => {
    const [, served] = await start(database, { name: "other" }, {}, { version: 2 });
    expect(idsOf(await claim(database))).toEqual([served]);
    expect(idsOf(await claim(database, { names: ["counter", "other"], versions: [2, 1] }))).toHaveLength(2);
  });

  it("finds its runs in one call, however many of others are due before them", async () => {
    const before = { name: "other", priority: -1, at: new Date(Date.now() - 60_000) };
    await start(database, ...Array.from({ length: 2_500 }, () => before));
    const [mine] = await start(database, {});
    const look = await claim(database, { limit: 1 });
    expect(idsOf(look)).toEqual([mine]);
    expect((await claim(database, { limit: 1, floor: look.floor })).more).toBe(false);
  });

  it.each([1, 7, 100])(
    "merges its definitions in the order of priority, due time and id, %i at a time",
    async (limit) => {
      const served = { names: ["one", "two", "three", "two"], versions: [1, 1, 1, 2] };
      const now = Date.now();
      const given = Array.from({ length: 400 }, (_, n) => ({
        name: served.names[(n * 7) % 4]!,
        version: served.versions[(n * 7) % 4]!,
        // A few definitions have most of the urgent runs, and some are of others.
        priority: n % 11 === 0 ? -((n * 7) % 4) : (n * 13) % 3,
        at: new Date(now - ((n * 7919) % 97) * 1_000),
      }));
      const ids = await start(database, ...given, { name: "other", priority: -9 });
      await start(database, { name: "one", delayMs: 60_000, priority: -9 });
      const expected = given
        .map(({ priority, at }, n) => ({ priority, at, id: ids[n]! }))
        .toSorted(
          (a, b) => a.priority - b.priority || +a.at - +b.at || (BigInt(a.id) < BigInt(b.id) ? -1 : 1),
        )
        .map(({ id }) => id);
      const found: string[] = [];
      let look;
      do {
        look = await claim(database, { ...served, limit });
        found.push(...idsOf(look));
      } while (look.more);
      expect(found).toEqual(expected);
      expect(look.dueMs).toBeGreaterThan(0);
    },
  );

  it("begins at the low-water mark and still finds what became claimable before it", async () => {
    const [first, second] = await start(database, {}, {});
    const one = await claim(database, { limit: 1 });
    expect(idsOf(one)).toEqual([first]);
    expect(one.floor).not.toBeNull();
    await store.release([{ runId: first!, claimId: one.claimId }]);
    await sql("update runs set eligible_at = eligible_at - interval '1 hour' where id = $1", [first]);
    // the second lies behind the mark, the first before it: a full batch needs both looks
    expect(idsOf(await claim(database, { limit: 2, floor: one.floor })).toSorted()).toEqual(
      [first, second].toSorted(),
    );
  });

  it("keeps the order of lower priorities when the mark lies in a higher one", async () => {
    const hourAgo = new Date(Date.now() - 3_600_000);
    const [urgent] = await start(database, { priority: 0 });
    const [old] = await start(database, { priority: 9, at: hourAgo });
    const one = await claim(database, { limit: 1 });
    expect(idsOf(one)).toEqual([urgent]);
    const [fresh] = await start(database, { priority: 9 });
    expect(idsOf(await claim(database, { limit: 1, floor: one.floor }))).toEqual([old]);
    expect(idsOf(await claim(database, { limit: 1, floor: one.floor }))).toEqual([fresh]);
  });

  it("gives concurrent claimers every run once", async () => {
    const ids = await start(database, ...Array.from({ length: 600 }, () => ({})));
    const claimed: string[] = [];
    await Promise.all(
      [1, 2, 3, 4].map(async () => {
        for (;;) {
          const batch = idsOf(await claim(database, { limit: 25 }));
          if (batch.length === 0) return;
          claimed.push(...batch);
        }
      }),
    );
    expect(claimed).toHaveLength(600);
    expect(new Set(claimed)).toEqual(new Set(ids));
  });

  it("next resets the attempt and is due now, retry counts it and is due after its delay", async () => {
    const [runId] = await start(database, {});
    await commit(database, await claimOne(database), retry(60_000));
    const [later] = await sql<{ attempt: number; due: number }>(
      "select attempt, extract(epoch from eligible_at - clock_timestamp())::float8 as due from runs where id = $1",
      [runId],
    );
    expect(later!.attempt).toBe(1);
    expect(later!.due).toBeGreaterThan(50);
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
    const again = await claimOne(database);
    expect(again.attempt).toBe(1);
    await commit(database, again, next("two"));
    expect(await claimOne(database)).toMatchObject({ runId, attempt: 0, step: "two" });
  });

  it("next may change the priority", async () => {
    const [runId] = await start(database, {});
    await commit(database, await claimOne(database), next("two", null, { priority: 7 }));
    expect(await claimOne(database)).toMatchObject({ runId, priority: 7 });
  });
});

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

describe("uniqueness", () => {
  const starting = (...runs: Parameters<typeof aRun>[0][]) =>
    store.start(runs.map(aRun), { allOrNothing: false, claim: null });

  it("a taken unique key starts nothing and answers its holder, against existing runs and within the batch", async () => {
    const first = await starting(
      { uniqueKey: key("u1") },
      { uniqueKey: key("u2") },
      { uniqueKey: key("u1") },
    );
    expect(first.map(({ created }) => created)).toEqual([true, true, false]);
    expect(first[2]!.runId).toBe(first[0]!.runId);
    const [again] = await starting({ uniqueKey: key("u2") });
    expect(again).toEqual({ runId: first[1]!.runId, created: false, phase: "runnable", conflict: null });
  });

  it("ids follow input order although rows go in sorted by key", async () => {
    const started = await starting(
      { uniqueKey: key("z") },
      { uniqueKey: key("m") },
      {},
      { uniqueKey: key("a") },
    );
    const ids = started.map(({ runId }) => BigInt(runId));
    expect(ids).toEqual(ids.toSorted((one, other) => (one < other ? -1 : 1)));
  });

  it("leaving the scope frees the key", async () => {
    const [first] = await starting({ uniqueKey: key("free") });
    await commit(database, await claimOne(database), done());
    const [second] = await starting({ uniqueKey: key("free") });
    expect(second).toMatchObject({ created: true });
    expect(second!.runId).not.toBe(first!.runId);
  });

  it("the scope is the caller's: a key can stay taken after the end, or be free while executing", async () => {
    await starting({ uniqueKey: key("for ever"), uniqueScope: ["runnable", "executing", "done"] });
    await commit(database, await claimOne(database), done());
    expect(await starting({ uniqueKey: key("for ever") })).toMatchObject([{ created: false, phase: "done" }]);
    await starting({ uniqueKey: key("queued"), uniqueScope: ["runnable"] });
    await claimOne(database);
    expect(await starting({ uniqueKey: key("queued"), uniqueScope: ["runnable"] })).toMatchObject([
      { created: true },
    ]);
  });

  it("an idempotency key is per definition name, in every status, whatever the input", async () => {
    const [first] = await starting({ idempotencyKey: "i1", input: '{"a":1}' });
    await commit(database, await claimOne(database), done());
    expect(await starting({ idempotencyKey: "i1", input: '{"a":2}' })).toEqual([
      { runId: first!.runId, created: false, phase: "done", conflict: null },
    ]);
    expect(await starting({ idempotencyKey: "i1", name: "other" })).toMatchObject([{ created: true }]);
  });

  it("two keys of different runs conflict: nothing is started, for a batch nothing at all", async () => {
    const [one] = await starting({ uniqueKey: key("c1") });
    const [other] = await starting({ idempotencyKey: "c2" });
    const both = { uniqueKey: key("c1"), idempotencyKey: "c2" };
    expect(await starting(both, {})).toMatchObject([
      { created: false, runId: one!.runId, conflict: other!.runId },
      { created: true, conflict: null },
    ]);
    const [{ count: before }] = (await sql<{ count: string }>("select count(*) from runs")) as [
      { count: string },
    ];
    const many = store.start([aRun({}), aRun(both)], { allOrNothing: true, claim: null });
    await expect(many).rejects.toMatchObject({
      code: "KeyConflict",
      message: expect.stringContaining("item 1") as string,
    });
    expect(await sql("select count(*) from runs")).toEqual([{ count: before }]);
  });

  it("a key taken by a start that is not committed yet waits for it and then answers its holder", async () => {
    const client = await database.connect();
    await client.query("begin");
    const { rows } = await client.query(
      "select id from start_runs(array['(counter,1,machine,default,,,,,,slow,,,,,,,,,,,)'::new_run], array['{}'], false, true, null, null)",
    );
    const waiting = starting({ idempotencyKey: "slow" });
    await client.query("commit");
    expect(await waiting).toMatchObject([{ created: false, runId: (rows as { id: string }[])[0]!.id }]);
  });
});
