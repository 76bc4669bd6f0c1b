import type pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import type { ClaimedRun, Transition } from "../../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../../support/database.js";
import {
  aCommit,
  claim,
  claimOne,
  commit,
  done,
  next,
  park,
  register,
  retry,
  signal,
  start,
} from "../../support/store.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
/** Connections of transactions that a test has left open. */
const open: pg.Client[] = [];

afterEach(async () => {
  for (const client of open.splice(0)) await client.end();
  await sql("delete from runs");
  await sql("delete from keys_to_repair");
});

const line = (partitionKey: string, count: number, priority = 0): Promise<string[]> =>
  start(database, ...Array.from({ length: count }, () => ({ partitionKey, priority })));
const claimedIds = async (): Promise<string[]> => (await claim(database)).runs.map(({ runId }) => runId);
const claimable = async (): Promise<string[]> => {
  const rows = await sql<{ id: string }>(
    "select id from runs where hold = 0 and status = 'runnable' order by id",
  );
  return rows.map(({ id }) => id);
};
/** An open transaction that has done this; it ends with the test, whatever becomes of that. */
const transaction = async (text: string, values: unknown[]): Promise<{ commit: () => Promise<unknown> }> => {
  const client = await database.connect();
  open.push(client);
  await client.query("begin");
  await client.query(text, values);
  return { commit: () => client.query("commit") };
};
const signalInFlight = (runId: string) =>
  transaction("select * from signal(array[$1::bigint], '{go}', '{1}', null, true)", [runId]);
const decidingAbout = (key: string) => transaction("select pg_advisory_xact_lock(key_lock($1))", [key]);
/** While `act` is under way, what ends a claim waits for its key as long as it takes. */
const patiently = async (act: () => Promise<void>): Promise<void> => {
  const patience = (time: string) =>
    sql(`do $do$ declare f regprocedure; begin
      for f in select oid from pg_proc where proname in ('commit', 'finish') and pronamespace = current_schema()::regnamespace loop
        execute format('alter function %s set lock_timeout = %L', f, '${time}');
      end loop;
    end $do$`);
  await patience("1min");
  try {
    await act();
  } finally {
    await patience("100ms");
  }
};
const deadlocks = async (): Promise<number> => {
  await sql("select pg_stat_force_next_flush()").catch(() => {});
  const [row] = await sql<{ deadlocks: string }>(
    "select deadlocks from pg_stat_database where datname = current_database()",
  );
  return Number(row!.deadlocks);
};

describe("while somebody's open transaction has the first of a key locked", () => {
  it("no other of the key is claimed, and other keys are", async () => {
    const [first, second] = await line("a", 3);
    const [free] = await line("b", 1);
    const user = await signalInFlight(first!);
    expect(await claimedIds()).toEqual([free]);
    expect(await claimedIds()).toEqual([]);
    await store.repairKeys(null, 100);
    expect(await claimedIds()).toEqual([]);
    await user.commit();
    const run = await claimOne(database);
    expect(run.runId).toBe(first);
    await commit(database, run, done());
    expect(await claimedIds()).toEqual([second]);
  });

  it("the end of the holder lets no other in; the repair lets the first in afterwards", async () => {
    const [holder, first, last] = await line("a", 3);
    const run = await claimOne(database);
    expect(await claimedIds()).toEqual([]);
    const user = await signalInFlight(first!);
    expect(await commit(database, run, done())).toMatchObject({ kind: "committed" });
    expect(await claimable()).toEqual([]);
    expect(await store.repairKeys(null, 100)).toEqual({ last: null, queues: [] });
    expect(await claimable()).toEqual([]);
    await user.commit();
    expect(await store.repairKeys(null, 100)).toEqual({ last: null, queues: ["default"] });
    expect(await claimable()).toEqual([first]);
    expect([run.runId, await claimedIds()]).toEqual([holder, [first]]);
    expect(last).toBeDefined();
  });
});

describe("the repair of keys", () => {
  const blockAll = (): Promise<unknown> => sql("update runs set hold = 1 where partition_key is not null");

  it("lets in the first blocked run of each key that nobody holds, and of no other", async () => {
    const [a] = await line("a", 2);
    await line("b", 2);
    const held = await claim(database, { limit: 1 });
    await blockAll();
    await sql("update runs set hold = 0 where id = $1", [held.runs[0]!.runId]);
    expect(held.runs[0]!.runId).toBe(a);
    const [b] = (await sql<{ id: string }>("select min(id) as id from runs where partition_key = 'b'")) as [
      { id: string },
    ];
    expect(await store.repairKeys(null, 100)).toEqual({ last: null, queues: ["default"] });
    expect(await claimable()).toEqual([b.id]);
    expect(await store.repairKeys(null, 100)).toEqual({ last: null, queues: [] });
  });

  it("walks the keys in pages and says where it stopped", async () => {
    const ids = await start(
      database,
      ...["k1", "k2", "k3", "k4", "k5"].map((partitionKey) => ({ partitionKey })),
    );
    await blockAll();
    expect(await store.repairKeys(null, 2)).toEqual({ last: "k2", queues: ["default"] });
    expect(await claimable()).toEqual(ids.slice(0, 2));
    expect(await store.repairKeys("k2", 2)).toEqual({ last: "k4", queues: ["default"] });
    expect(await claimable()).toEqual(ids.slice(0, 4));
    expect(await store.repairKeys("k4", 2)).toEqual({ last: null, queues: ["default"] });
    expect(await claimable()).toEqual(ids);
  });

  it("leaves a key alone that another transaction decides about, and does not wait for it", async () => {
    const ids = await start(database, { partitionKey: "busy" }, { partitionKey: "calm" });
    await blockAll();
    const other = await decidingAbout("busy");
    await store.repairKeys(null, 100);
    expect(await claimable()).toEqual([ids[1]]);
    await other.commit();
    await store.repairKeys(null, 100);
    expect(await claimable()).toEqual(ids);
  });
});

describe("a key that another transaction decides about", () => {
  it("is neither claimed nor waited for, and the claim asks to be repeated soon", async () => {
    const [busy, calm] = await start(database, { partitionKey: "busy" }, { partitionKey: "calm" });
    const other = await decidingAbout("busy");
    const { runs, dueMs } = await claim(database);
    expect(runs.map(({ runId }) => runId)).toEqual([calm]);
    expect(dueMs).toBeLessThanOrEqual(5);
    expect(await claimable()).toEqual([busy]);
    await other.commit();
    expect(await claimedIds()).toEqual([busy]);
  });

  it("does not keep a commit from being committed; the repair lets the next in", async () => {
    const [, second] = await line("a", 2);
    const run = await claimOne(database);
    expect(await claimedIds()).toEqual([]);
    const other = await decidingAbout("a");
    expect(await commit(database, run, done())).toMatchObject({ kind: "committed" });
    expect(await claimable()).toEqual([]);
    await other.commit();
    await store.repairKeys(null, 100);
    expect(await claimedIds()).toEqual([second]);
  });

  it("leaves the other keys of the batch alone: theirs are let in at once", async () => {
    const keys = ["k1", "k2", "k3", "k4", "k5"];
    for (const partitionKey of keys) await line(partitionKey, 2);
    const { runs, claimId } = await claim(database);
    expect(runs).toHaveLength(5);
    const other = await decidingAbout("k3");
    const ends = runs.map((run) => aCommit({ ...run, claimId }, done()));
    await store.commit(ends, { patient: true });
    const keysOf = async (ids: readonly string[]) =>
      (await sql<{ key: string }>("select partition_key as key from runs where id = any ($1)", [ids]))
        .map(({ key }) => key)
        .toSorted();
    expect(await keysOf(await claimable())).toEqual(["k1", "k2", "k4", "k5"]);
    await other.commit();
    await store.repairKeys(null, 100);
    expect(await keysOf(await claimable())).toEqual(keys);
  });

  it.each(["the key", "the next run"])(
    "is looked at by the next repair, however many keys have blocked runs: %s was locked",
    async (what) => {
      await start(
        database,
        ...Array.from({ length: 1_000 }, (_, n) => ({ partitionKey: `crowd-${n}` })),
        ...Array.from({ length: 1_000 }, (_, n) => ({ partitionKey: `crowd-${n}`, priority: 1 })),
      );
      const [, second] = await line("zz", 2, -1);
      const run = await claimOne(database);
      const other = what === "the key" ? await decidingAbout("zz") : await signalInFlight(second!);
      await commit(database, run, done());
      expect(await sql("select from runs where id = $1 and hold = 1", [second])).toHaveLength(1);
      await store.recover({ limit: 1_000, repairs: true, marks: null });
      await other.commit();
      await store.recover({ limit: 1_000, repairs: true, marks: null });
      expect(await sql("select from runs where id = $1 and hold = 0", [second])).toHaveLength(1);
      expect(await sql("select from keys_to_repair")).toEqual([]);
    },
  );

  it("is looked at by the next repair, however often a key was left that is still locked", async () => {
    const [, second] = await line("zz", 2);
    const run = await claimOne(database);
    const locked = await decidingAbout("hot");
    await sql("select note_keys_to_repair(array(select 'hot' from generate_series(1, 300)))");
    const other = await decidingAbout("zz");
    await commit(database, run, done());
    await other.commit();
    await store.repairKeys("zzz", 200);
    expect(await claimedIds()).toEqual([second]);
    await locked.commit();
    await store.repairKeys(null, 200);
    expect(await sql("select from keys_to_repair")).toEqual([]);
  });
});

/** Commits, again while somebody looks at the run just now. */
const settle = async (run: ClaimedRun & { claimId: string }, transition: Transition): Promise<void> => {
  let verdict = await commit(database, run, transition);
  while (verdict.kind === "busy") verdict = await commit(database, run, transition);
  expect(verdict.kind).toBe("committed");
};

/** Claimers that claim, check that nobody else has their keys, and end each claim by `end`, until all runs have ended. */
async function drain(
  count: number,
  end: (run: ClaimedRun & { claimId: string }) => Promise<"ended" | "goes on">,
): Promise<ClaimedRun[]> {
  const held = new Map<string, string>();
  const claimed: ClaimedRun[] = [];
  const violations: string[] = [];
  let left = count;
  const claimers = [1, 7, 30, 100].map(async (limit) => {
    try {
      while (left > 0 && violations.length === 0) {
        const { runs, claimId } = await claim(database, { limit });
        if (runs.length === 0) await store.repairKeys(null, 100);
        for (const { runId, partitionKey } of runs) {
          if (held.has(partitionKey!)) violations.push(`${runId} beside ${held.get(partitionKey!)}`);
          held.set(partitionKey!, runId);
        }
        claimed.push(...runs);
        const ends = runs.map(async (run) => {
          held.delete(run.partitionKey!);
          if ((await end({ ...run, claimId })) === "ended") left--;
        });
        await Promise.all(ends);
      }
    } catch (error) {
      left = 0;
      throw error;
    }
  });
  await Promise.allSettled(claimers);
  await Promise.all(claimers);
  expect(violations).toEqual([]);
  return claimed;
}

const crowd = (count: number, keys: number) =>
  start(
    database,
    ...Array.from({ length: count }, () => ({
      partitionKey: `key-${Math.floor(Math.random() * keys)}`,
      priority: Math.floor(Math.random() * 3),
    })),
  );

describe("several claimers at once", () => {
  it("get no two runs of a key by calls at the same time, and no call fails", async () => {
    for (let round = 0; round < 15; round++) {
      await crowd(60, 6);
      const calls = await Promise.all(Array.from({ length: 20 }, () => claim(database, { limit: 10 })));
      const keys = calls.flatMap(({ runs }) => runs.map(({ partitionKey }) => partitionKey));
      expect(new Set(keys).size).toBe(keys.length);
      expect(keys.length).toBeGreaterThan(0);
      await sql("delete from runs");
    }
  });

  it("drain thousands of runs over a few keys, in the order of each key", async () => {
    const before = await deadlocks();
    await crowd(2_000, 12);
    const claimed = await drain(2_000, async (run) => {
      await settle(run, done());
      return "ended";
    });
    expect(claimed).toHaveLength(2_000);
    const rows = await sql<{ id: string; key: string }>(
      "select id, partition_key as key from runs order by priority, eligible_at, id",
    );
    for (const key of new Set(rows.map((row) => row.key))) {
      expect(claimed.filter((run) => run.partitionKey === key).map(({ runId }) => runId)).toEqual(
        rows.filter((row) => row.key === key).map(({ id }) => id),
      );
    }
    expect(await deadlocks()).toBe(before);
  });

  it("lose none, whatever becomes of the claims: ended, retried, moved, parked and woken, released, cancelled", async () => {
    const before = await deadlocks();
    const count = 1_000;
    await crowd(count, 8);
    await drain(count, async (run) => {
      const cast = Math.random();
      // A release skips a run that a claim looks at just now.
      const release = (): Promise<unknown> =>
        until("the claim is released", async () => (await store.release([run])).length === 1);
      if (cast < 0.5) await settle(run, done());
      else if (cast < 0.6) await release();
      else if (cast < 0.7) await settle(run, retry(0));
      else if (cast < 0.8)
        await settle(run, next("moved", null, { partitionKey: `key-${Math.floor(cast * 80) % 8}` }));
      else if (cast < 0.9) {
        await settle(run, park("go"));
        await signal(database, run.runId, "go");
      } else {
        await store.cancel(run.runId, { reason: null, cascade: false });
        await release();
      }
      return cast < 0.5 || cast >= 0.9 ? "ended" : "goes on";
    });
    expect(await sql("select from runs where completed_at is null or locked_by is not null")).toEqual([]);
    expect(await deadlocks()).toBe(before);
  });

  it("find work although others are claiming at that moment: no claim locks many more keys than it takes runs", async () => {
    const ids = await start(
      database,
      ...Array.from({ length: 900 }, (_, index) => ({ partitionKey: `own-${index}` })),
    );
    const claiming = (claimId: number) =>
      transaction("select count(*) from claim('default', 'worker', $1, 10, '{counter}', '{1}', null, null)", [
        claimId,
      ]);
    const [one, other] = [await claiming(1), await claiming(2)];
    const { runs } = await claim(database, { limit: 10 });
    expect(runs.length).toBe(10);
    for (const { runId } of runs) expect(ids.indexOf(runId)).toBeLessThan(500);
    await one.commit();
    await other.commit();
  });

  it("need no repair when nothing but claims and commits touches the runs", async () => {
    await patiently(async () => {
      for (let round = 0; round < 100; round++) {
        const ids = await line("a", 6);
        let ended = 0;
        await Promise.all(
          [1, 2].map(() =>
            until("all have ended", async () => {
              const { runs, claimId } = await claim(database, { limit: 5 });
              for (const run of runs) {
                await settle({ ...run, claimId }, done());
                ended++;
              }
              return ended === ids.length;
            }),
          ),
        );
      }
    });
  });
});
