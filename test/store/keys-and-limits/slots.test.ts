import type pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import type { ClaimedRun, NewRun } from "../../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../../support/database.js";
import {
  claim,
  claimOne,
  commit,
  done,
  keep,
  next,
  park,
  register,
  retry,
  signal,
  start,
} from "../../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
await sql("update workers set queues = '{default,other}'");
/** Connections of transactions that a test has left open. */
const open: pg.Client[] = [];

const limit = (name: string, concurrent: number | null, rate = false): Promise<unknown> =>
  store.setLimit({ name, concurrent, ...(rate ? { allowed: 1, periodMs: 3_600_000, burst: 2 } : noRate) });
const noRate = { allowed: null, periodMs: null, burst: null };
await limit("gpu", 3);
await limit("one", 1);

afterEach(async () => {
  for (const client of open.splice(0)) await client.end();
  await sql("delete from runs");
  await sql("delete from slots");
  await sql("delete from slots_to_repair");
  await limit("gpu", 3);
});

/** Starts runs that name a limit, one call each, as different callers would. */
async function line(concurrency: string, count: number, given: Partial<NewRun> = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++)
    ids.push(...(await start(database, { options: { concurrency }, ...given })));
  return ids;
}
const claimedIds = async (options = {}): Promise<string[]> =>
  (await claim(database, options)).runs.map(({ runId }) => runId);
const ids = async (where: string): Promise<string[]> =>
  (await sql<{ id: string }>(`select id from runs where ${where} order by id`)).map(({ id }) => id);
const holders = (): Promise<string[]> => ids("locked_by is not null");
const claimable = (): Promise<string[]> =>
  ids("hold = 0 and status = 'runnable' and eligible_at <= clock_timestamp()");
const waiting = (): Promise<string[]> => ids("hold = 32");
/** Claims all it can, in two calls: the second finds nothing and leaves the others waiting. */
async function fill(): Promise<(ClaimedRun & { claimId: string })[]> {
  const { runs, claimId } = await claim(database);
  expect(await claimedIds()).toEqual([]);
  return runs.map((run) => ({ ...run, claimId }));
}
const transaction = async (text: string, values: unknown[]): Promise<{ commit: () => Promise<unknown> }> => {
  const client = await database.connect();
  open.push(client);
  await client.query("begin");
  await client.query(text, values);
  return { commit: () => client.query("commit") };
};

describe("a concurrency limit", () => {
  it("lets as many runs be claimed as it has slots, and takes the others out of the claim index", async () => {
    const runs = await line("gpu", 10);
    expect(await claimedIds()).toEqual(runs.slice(0, 3));
    expect(await claimedIds()).toEqual([]);
    expect(await claimable()).toEqual([]);
    expect(await waiting()).toEqual(runs.slice(3));
    const slots = await sql<{ slot: number }>(
      "select s.slot from slots s join runs r on r.id = s.run_id where r.locked_by is not null order by s.slot",
    );
    expect(slots.map(({ slot }) => slot)).toEqual([1, 2, 3]);
  });

  it("admits the first run in line when a slot is free, and no other", async () => {
    const runs = await line("gpu", 6);
    for (const [index, run] of (await fill()).entries()) {
      await commit(database, run, done());
      expect(await claimable()).toEqual(runs.slice(3, 4 + index));
    }
    expect(await claimedIds()).toEqual(runs.slice(3));
  });

  it("has slots of its own for each key", async () => {
    const a = await line("gpu:a", 4);
    const b = await line("gpu:b", 2);
    const none = await start(database, {});
    expect((await claimedIds()).toSorted()).toEqual([...a.slice(0, 3), ...b, ...none].toSorted());
    expect(await waiting()).toEqual(a.slice(3));
  });

  it("counts the runs of all queues", async () => {
    const here = await line("gpu", 2);
    const there = await line("gpu", 2, { queue: "other" });
    expect(await claimedIds()).toEqual(here);
    expect(await claimedIds({ queue: "other" })).toEqual(there.slice(0, 1));
    expect(await waiting()).toEqual(there.slice(1));
  });

  it("admits the first runs of every queue: a queue without workers keeps no other waiting", async () => {
    const [held] = await line("one", 1);
    const nobody = await line("one", 2, { queue: "nobody" });
    const [first, second] = await line("one", 2);
    await sql("update runs set hold = 32 where id = any ($1)", [nobody]);
    await sql("select put_slots($1, null)", [nobody]);
    const run = await claimOne(database);
    expect([run.runId, await claimedIds()]).toEqual([held, []]);
    await commit(database, run, done());
    expect(await claimedIds()).toEqual([first]);
    expect(await waiting()).toContain(second);
  });

  it("cannot be exceeded by any statement: the database refuses a slot that is held", async () => {
    const runs = await line("gpu", 4);
    await fill();
    const steal = sql(
      `with thief as (update runs set status = 'executing', hold = 0, locked_by = 'thief' where id = $1)
       update slots set slot = 3 where run_id = $1`,
      [runs[3]],
    );
    await expect(steal).rejects.toThrow(/slots_held/);
  });

  it("gives the slots in order of priority, then of time", async () => {
    await line("one", 1);
    const [run] = await fill();
    const late = await line("one", 2, { priority: 5 });
    const [urgent] = await line("one", 1, { priority: -1 });
    expect(await claimedIds()).toEqual([]);
    await commit(database, run!, done());
    const second = await claimOne(database);
    expect(second.runId).toBe(urgent);
    await commit(database, second, done());
    expect(await claimedIds()).toEqual(late.slice(0, 1));
  });

  it("lets no new run overtake those that wait, although a claim begins behind them", async () => {
    await line("one", 1);
    const [run] = await fill();
    const [first] = await line("one", 1);
    expect(await claimedIds()).toEqual([]);
    await commit(database, run!, done());
    const [fresh] = await line("one", 1);
    const [at] = await sql<{ us: string }>("select to_us(eligible_at) as us from runs where id = $1", [
      fresh,
    ]);
    const floor = { priority: 0, microseconds: Number(at!.us) };
    expect(await claimedIds({ floor })).toEqual([first]);
    expect(await waiting()).toEqual([fresh]);
  });
});

describe("a slot is free again", () => {
  it.each([
    ["ends", (run: ClaimedRun & { claimId: string }) => commit(database, run, done())],
    [
      "fails",
      (run) => commit(database, run, { kind: "stop", step: null, error: '{"name":"E","message":""}' }),
    ],
    ["is retried with a backoff", (run) => commit(database, run, retry(60_000))],
    ["waits for a signal", (run) => commit(database, run, park("go"))],
    [
      "goes to a step without a limit",
      (run) => commit(database, run, next("on", null, { concurrency: null })),
    ],
    [
      "goes to a step with another limit",
      (run) => commit(database, run, next("on", null, { concurrency: "one" })),
    ],
    ["is released", (run) => store.release([run])],
    [
      "is cancelled and released",
      async (run) => {
        await store.cancel(run.runId, { reason: null, cascade: false });
        expect(await claimable()).toEqual([]);
        await store.release([run]);
      },
    ],
  ] satisfies [string, (run: ClaimedRun & { claimId: string }) => Promise<unknown>][])(
    "when its run %s",
    async (_, end) => {
      await line("gpu", 2);
      await fill();
      const [holder] = await line("gpu", 1);
      const run = await claimOne(database);
      expect(run.runId).toBe(holder);
      const [first, second] = await line("gpu", 2);
      expect(await claimedIds()).toEqual([]);
      await end(run);
      expect((await claimable()).filter((id) => id !== holder)).toEqual([first]);
      expect(await waiting()).toEqual([second]);
    },
  );

  it("when its worker is dead", async () => {
    await register(database, "mortal");
    const runs = await line("one", 2);
    expect(await claimedIds({ workerId: "mortal" })).toEqual(runs.slice(0, 1));
    expect(await claimedIds()).toEqual([]);
    await sql("update workers set seen_at = clock_timestamp() - interval '1 hour' where id = 'mortal'");
    await sql("update settings set beats_since = clock_timestamp() - interval '1 day'");
    await store.recover({ limit: 1_000, repairs: true, marks: null });
    expect(await claimable()).toEqual(runs);
    expect(await claimedIds()).toEqual(runs.slice(0, 1));
  });

  it("stays held while the run goes from step to step", async () => {
    await line("one", 2);
    const [run] = await fill();
    expect(await commit(database, run!, keep("second"))).toMatchObject({ kind: "committed" });
    expect(await claimable()).toEqual([]);
    expect(await holders()).toEqual([run!.runId]);
  });

  it("and a run that was woken takes one again", async () => {
    const [parked] = await line("one", 1);
    const [run] = await fill();
    await commit(database, run!, park("go"));
    const [other] = await line("one", 1);
    const holder = await claimOne(database);
    expect(holder.runId).toBe(other);
    await signal(database, parked!, "go");
    expect(await claimedIds()).toEqual([]);
    await commit(database, holder, done());
    expect(await claimedIds()).toEqual([parked]);
  });
});

describe("a run that leaves the line", () => {
  it("lets the next one in: an admitted run is cancelled", async () => {
    const [, admitted, second] = await line("one", 3);
    const [run] = await fill();
    await commit(database, run!, done());
    expect(await claimable()).toEqual([admitted]);
    await store.cancel(admitted!, { reason: null, cascade: false });
    expect(await claimable()).toEqual([second]);
  });

  it("lets the next one in: its partition key is held", async () => {
    const [holder] = await start(database, { partitionKey: "p" });
    expect(await claimedIds()).toEqual([holder]);
    const [keyed] = await line("one", 1, { partitionKey: "p" });
    const [free] = await line("one", 1);
    expect(await claimedIds()).toEqual([free]);
    expect(await ids("hold = 1")).toEqual([keyed]);
  });

  it("lets the next one in: it has no token", async () => {
    await limit("api", 1, true);
    await sql("insert into buckets values ('api', '', 0, clock_timestamp(), clock_timestamp(), 0)");
    const [throttled] = await line("one", 1, { rateLimit: "api", weight: 1 });
    const [free] = await line("one", 1);
    expect(await claimedIds()).toEqual([]);
    expect(await claimedIds()).toEqual([free]);
    expect(await ids("throttled")).toEqual([throttled]);
  });

  it("lets the next one in: it is paused; when it is resumed, it goes first again", async () => {
    const [, first, second] = await line("one", 3);
    const [run] = await fill();
    await sql("select pause_runs(array[$1::bigint], 'me', null)", [first]);
    await commit(database, run!, done());
    expect(await claimable()).toEqual([second]);
    const other = await claimOne(database);
    await sql("select resume_runs(array[$1::bigint])", [first]);
    expect(await claimable()).toEqual([]);
    await commit(database, other, done());
    expect(await claimedIds()).toEqual([first]);
  });

  it("keeps its place in line for its partition key while it waits for a slot", async () => {
    await line("one", 1);
    const [run] = await fill();
    const [first] = await line("one", 1, { partitionKey: "p" });
    const [second] = await start(database, { partitionKey: "p" });
    expect(await claimedIds()).toEqual([]);
    expect(await claimedIds()).toEqual([]);
    await commit(database, run!, done());
    const holder = await claimOne(database);
    expect(holder.runId).toBe(first);
    await commit(database, holder, done());
    expect(await claimedIds()).toEqual([second]);
  });

  it("takes no tokens while it waits for a slot", async () => {
    await limit("api", 1, true);
    await sql("delete from buckets");
    await line("one", 1);
    await fill();
    const [blocked] = await line("one", 1, { rateLimit: "api", weight: 1 });
    const free = await start(database, ...[1, 2].map(() => ({ rateLimit: "api", weight: 1 })));
    expect((await claimedIds()).toSorted()).toEqual(free.toSorted());
    expect(await waiting()).toEqual([blocked]);
  });
});

describe("a limit that changes", () => {
  it("lets its holders finish when it is lowered, and no other begin", async () => {
    const runs = await line("gpu", 6);
    const held = await fill();
    await limit("gpu", 1);
    for (const run of held.slice(0, 2)) await commit(database, run, done());
    await store.recover({ limit: 1_000, repairs: true, marks: null });
    expect(await claimedIds()).toEqual([]);
    await commit(database, held[2]!, done());
    expect(await claimedIds()).toEqual(runs.slice(3, 4));
  });

  it("admits runs when it is raised, and all of them when it has no slots any longer", async () => {
    const runs = await line("gpu", 10);
    await fill();
    await limit("gpu", 5);
    await store.recover({ limit: 1_000, repairs: true, marks: null });
    expect(await claimedIds()).toEqual(runs.slice(3, 5));
    await limit("gpu", null, true);
    await store.recover({ limit: 1_000, repairs: true, marks: null });
    expect(await claimedIds()).toEqual(runs.slice(5));
  });
});

describe("the repair", () => {
  it("takes back the slot of a run whose claim somebody ended by hand", async () => {
    const [first, second] = await line("one", 2);
    await fill();
    await sql("update runs set status = 'runnable', locked_by = null, hold = 4 where id = $1", [first]);
    expect(await claimedIds()).toEqual([]);
    await store.recover({ limit: 1_000, repairs: true, marks: null });
    expect(await claimedIds()).toEqual([second]);
  });
});

describe("while another transaction", () => {
  it("decides about a key, claims and commits do not wait for it, and the repair admits the next", async () => {
    const [, second] = await line("one", 2);
    const [calm] = await line("gpu", 1);
    const { runs, claimId } = await claim(database);
    expect(runs).toHaveLength(2);
    expect(await claimedIds()).toEqual([]);
    const other = await transaction("select pg_advisory_xact_lock(slot_lock($1))", ["one"]);
    for (const run of runs) await commit(database, { ...run, claimId }, done());
    expect(calm).toBeDefined();
    expect(await claimable()).toEqual([]);
    await store.recover({ limit: 1_000, repairs: true, marks: null });
    expect(await claimable()).toEqual([]);
    await other.commit();
    await store.recover({ limit: 1_000, repairs: true, marks: null });
    expect(await claimedIds()).toEqual([second]);
    expect(await sql("select from slots_to_repair")).toEqual([]);
  });

  it("has the first in line locked, no other is admitted, and the repair admits it afterwards", async () => {
    const [, second, third] = await line("one", 3);
    const [run] = await fill();
    const other = await transaction("select * from signal(array[$1::bigint], '{go}', '{1}', null, true)", [
      second,
    ]);
    await commit(database, run!, done());
    expect(await claimable()).toEqual([]);
    await other.commit();
    await store.recover({ limit: 1_000, repairs: true, marks: null });
    expect(await claimable()).toEqual([second]);
    expect(await waiting()).toEqual([third]);
  });
});
