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
