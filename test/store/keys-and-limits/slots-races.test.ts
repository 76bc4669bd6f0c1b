import { afterEach, describe, expect, it } from "vitest";
import type { ClaimedRun, Transition } from "../../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../../support/database.js";
import { claim, commit, done, next, park, register, retry, signal, start } from "../../support/store.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
const slots = 3;
await store.setLimit({ name: "tenant", allowed: null, periodMs: null, burst: null, concurrent: slots });
await store.setLimit({ name: "api", allowed: 1_000, periodMs: 1_000, burst: 50, concurrent: slots });

afterEach(async () => {
  await sql("delete from runs");
  await sql("delete from slots");
  await sql("delete from slots_to_repair");
  await sql("delete from keys_to_repair");
});

type Claimed = ClaimedRun & { claimId: string };

/** Commits, again while somebody looks at the run just now. */
async function settle(run: Claimed, transition: Transition): Promise<void> {
  let verdict = await commit(database, run, transition);
  while (verdict.kind === "busy") verdict = await commit(database, run, transition);
  expect(verdict.kind).toBe("committed");
}

/** A release skips a run that a claim looks at just now. */
const release = (run: Claimed): Promise<unknown> =>
  until("the claim is released", async () => (await store.release([run])).length === 1);

const repair = (): Promise<unknown> => store.recover({ limit: 1_000, repairs: true, marks: null });

/** Keys that more runs hold at this moment than they have slots, and holders without a slot. */
const violations = (): Promise<unknown[]> =>
  sql(
    `select r.concurrency, count(*) from runs r left join slots s on s.run_id = r.id and s.concurrency = r.concurrency
     where r.locked_by is not null and r.concurrency is not null
     group by r.concurrency having count(*) > ${slots} or bool_or(s.slot is null or s.slot not between 1 and ${slots})`,
  );

const deadlocks = async (): Promise<number> => {
  await sql("select pg_stat_force_next_flush()").catch(() => {});
  const [row] = await sql<{ deadlocks: string }>(
    "select deadlocks from pg_stat_database where datname = current_database()",
  );
  return Number(row!.deadlocks);
};

/** Claimers that claim, hold their runs for a moment, and end each claim by `end`, until all runs have ended. */
async function drain(count: number, end: (run: Claimed) => Promise<"ended" | "goes on">): Promise<string[]> {
  const order: string[] = [];
  const wrong: unknown[] = [];
  let left = count;
  let empty = 0;
  const claimers = [1, 5, 20, 100].map(async (limit) => {
    try {
      while (left > 0 && wrong.length === 0) {
        const { runs, claimId } = await claim(database, { limit });
        order.push(...runs.map(({ runId }) => runId));
        wrong.push(...(await violations()));
        if (runs.length === 0 && ++empty % 5 === 0) await repair();
        const ends = runs.map(async (run) => {
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
  expect(wrong).toEqual([]);
  return order;
}

const crowd = (count: number, keys: number, given = {}): Promise<string[]> =>
  start(
    database,
    ...Array.from({ length: count }, (_, n) => ({
      options: { concurrency: `tenant:${n % keys}` },
      ...given,
    })),
  );

describe("several claimers at once", () => {
  it("never hold more runs of a key than it has slots, and drain all of them", async () => {
    const before = await deadlocks();
    await crowd(1_500, 10);
    const order = await drain(1_500, async (run) => {
      await settle(run, done());
      return "ended";
    });
    expect(new Set(order).size).toBe(1_500);
    expect(await deadlocks()).toBe(before);
  });

  it("get the runs of a key in order, give or take its slots", async () => {
    const ids = await crowd(300, 1);
    const order = await drain(300, async (run) => {
      await settle(run, done());
      return "ended";
    });
    for (const [place, id] of order.entries()) {
      // Those that are admitted together may be claimed in any order.
      expect(Math.abs(place - ids.indexOf(id))).toBeLessThanOrEqual(2 * slots);
    }
  });

  it("lose no run and leak no slot, whatever becomes of the claims", async () => {
    const before = await deadlocks();
    const count = 800;
    await crowd(count / 2, 6);
    await crowd(count / 4, 6, { partitionKey: "p" });
    await crowd(count / 4, 6, { rateLimit: "api", weight: 1 });
    await drain(count, async (run) => {
      const cast = Math.random();
      if (cast < 0.5) await settle(run, done());
      else if (cast < 0.6) await release(run);
      else if (cast < 0.7) await settle(run, retry(0));
      else if (cast < 0.8)
        await settle(run, next("moved", null, { concurrency: `tenant:${Math.floor(cast * 80) % 6}` }));
      else if (cast < 0.9) {
        await settle(run, park("go"));
        await signal(database, run.runId, "go");
      } else {
        await store.cancel(run.runId, { reason: null, cascade: false });
        await release(run);
      }
      return cast < 0.5 || cast >= 0.9 ? "ended" : "goes on";
    });
    expect(await sql("select from runs where completed_at is null or locked_by is not null")).toEqual([]);
    expect(await sql("select from slots")).toEqual([]);
    expect(await deadlocks()).toBe(before);
  });

  it("need no repair when nothing but claims and commits touches the runs", async () => {
    for (let round = 0; round < 40; round++) {
      const ids = await crowd(8, 1);
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
      expect(await sql("select from slots_to_repair")).toEqual([]);
    }
  });
});

describe("a key with a large backlog", () => {
  it("does not keep the runs of other keys from being claimed", async () => {
    // One call per run, as many callers would, so that none of them begins as waiting.
    await sql(
      `insert into runs (id, status, name, version, kind, queue, priority, input, eligible_at, inserted_at, retention, concurrency)
       select (nextval('run_ids') << 6), 'runnable', 'counter', 1, 'machine', 'default', 0, '{}', clock(), clock(), '1 day', 'tenant:big'
       from generate_series(1, 20000)`,
    );
    const others = await crowd(30, 10);
    const claimed: string[] = [];
    let calls = 0;
    while (!others.every((id) => claimed.includes(id))) {
      const { runs } = await claim(database, { limit: 50 });
      claimed.push(...runs.map(({ runId }) => runId));
      expect(++calls).toBeLessThan(20);
    }
    expect(await violations()).toEqual([]);
  });
});
