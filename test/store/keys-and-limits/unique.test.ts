/** Unique keys: who holds one, who gives it up, and who is told. */

import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import {
  aCommit,
  claim,
  claimOne,
  commit,
  done,
  endRunsAfterEach,
  key,
  next,
  park,
  register,
  signal,
  spawn,
  start,
} from "../../support/store.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
await sql("update settings set beats_since = clock_timestamp() - interval '1 hour'");
endRunsAfterEach(database);

const keyOf = async (runId: string): Promise<unknown> =>
  (await sql("select unique_key, unique_scope::text from runs where id = $1", [runId]))[0];
const gone = { unique_key: null, unique_scope: null };

/** A run that comes to be runnable again, each way, while another runnable run holds its key. */
const ways: Record<string, (taken: object) => Promise<string>> = {
  signal: async (taken) => {
    const [runId] = await start(database, taken);
    await commit(database, await claimOne(database), park("go"));
    await start(database, { ...taken, delayMs: 3_600_000 });
    await signal(database, runId!, "go");
    return runId!;
  },
  "signal in a batch": async (taken) => {
    const [runId] = await start(database, taken);
    await commit(database, await claimOne(database), park("go"));
    await start(database, { ...taken, delayMs: 3_600_000 });
    const go = { runId: runId!, name: "go", payload: "{}", dedupKey: null };
    await store.signal([go, go], { patient: false });
    return runId!;
  },
  "child's end": async (taken) => {
    const [runId] = await start(database, taken);
    await commit(database, await claimOne(database), spawn({}));
    await start(database, { ...taken, delayMs: 3_600_000 });
    await commit(database, await claimOne(database), done());
    return runId!;
  },
  release: async (taken) => {
    await start(database, taken);
    const run = await claimOne(database);
    await start(database, { ...taken, delayMs: 3_600_000 });
    expect(await store.release([run])).toEqual([run.runId]);
    return run.runId;
  },
  "worker's death": async (taken) => {
    await register(database, "dying");
    await start(database, taken);
    const run = await claimOne(database, { workerId: "dying" });
    await start(database, { ...taken, delayMs: 3_600_000 });
    await sql("delete from workers where id = 'dying'");
    expect(await store.reap(100)).toBe(1);
    return run.runId;
  },
};

describe("a run that enters its unique scope while its key is taken gives it up, and that is told", () => {
  it.each(Object.keys(ways))("once, by the next claim, if a %s made it enter", async (way) => {
    const runId = await ways[way]!({ uniqueKey: key(way), uniqueScope: ["runnable"] });
    const run = await claimOne(database);
    expect(run).toMatchObject({ runId, uniqueLost: true });
    expect(await keyOf(runId)).toEqual(gone);
    await store.release([run]);
    expect(await claimOne(database)).toMatchObject({ runId, uniqueLost: false });
  });

  it("also if the claim is one by which the end of another run of its partition key is followed", async () => {
    const [first] = await start(database, { partitionKey: "p" });
    const one = await claimOne(database);
    expect(one.runId).toBe(first);
    const taken = { uniqueKey: key("handed"), uniqueScope: ["runnable"] as const };
    const [runId] = await start(database, { ...taken, partitionKey: "p" });
    // It has lost its key, by whatever.
    await sql("update runs set unique_key = null where id = $1", [runId]);
    const { verdicts } = await store.commit(
      [{ ...aCommit(one, done()), partitionKey: "p", next: { workerId: "worker", claimId: "77" } }],
      { patient: true },
    );
    expect(verdicts).toMatchObject([{ kind: "committed", handed: null }]);
    expect(await claimOne(database)).toMatchObject({ runId, uniqueLost: true });
  });

  it("by the cancellation, if that made it enter, or if no claim has told it before", async () => {
    const taken = { uniqueKey: key("cancelled"), uniqueScope: ["cancelled"] as const };
    const [holder, runId] = await start(database, taken, taken);
    expect(await store.cancel(holder!, { reason: null, cascade: false })).toMatchObject({ lost: [] });
    const lost = [{ runId, name: "counter", version: 1 }];
    expect(await store.cancel(runId!, { reason: null, cascade: false })).toMatchObject({ lost });
    expect(await keyOf(runId!)).toEqual(gone);

    const woken = await ways["signal"]!({ uniqueKey: key("woken"), uniqueScope: ["runnable"] });
    expect(await store.cancel(woken, { reason: null, cascade: false })).toMatchObject({
      lost: [{ runId: woken }],
    });
  });

  it("by the commit, if its outcome made it enter, and by no claim after that", async () => {
    const taken = { uniqueKey: key("committed"), uniqueScope: ["runnable"] as const };
    await start(database, taken);
    const run = await claimOne(database);
    await start(database, { ...taken, delayMs: 3_600_000 });
    expect(await commit(database, run, next("two"))).toMatchObject({ kind: "committed", uniqueLost: true });
    expect(await claimOne(database)).toMatchObject({ runId: run.runId, uniqueLost: false });
  });
});

it("a commit that gives the key up and then finds its parent locked leaves the key to the run", async () => {
  await start(database, {});
  const parent = await claimOne(database);
  const taken = { uniqueKey: key("child"), uniqueScope: ["done"] as const };
  await commit(database, parent, spawn(taken));
  const child = await claimOne(database);
  const [holder] = await start(database, taken);
  expect(await commit(database, await claimOne(database), done())).toMatchObject({ kind: "committed" });
  expect(await keyOf(holder!)).toMatchObject({ unique_key: key("child") });

  // A user waits for the parent; it gets the row when the first try, which finds the key taken, is undone.
  const user = await database.connect();
  await user.query("set application_name = 'waits-for-the-parent'");
  await sql(`create function public.until_locked() returns trigger language plpgsql as $$
    begin
      loop
        perform pg_stat_clear_snapshot();
        exit when exists (select from pg_stat_activity where application_name = 'waits-for-the-parent' and state = 'idle in transaction');
        perform pg_sleep(0.001);
      end loop;
      return new;
    end $$`);
  await sql(`create function public.until_waiting() returns trigger language plpgsql as $$
    begin
      loop
        perform pg_stat_clear_snapshot();
        exit when exists (select from pg_stat_activity where application_name = 'waits-for-the-parent' and wait_event_type = 'Lock');
        perform pg_sleep(0.001);
      end loop;
      return new;
    end $$`);
  await sql(`create trigger until_locked before update on runs for each row
    when (old.unique_key is not null and new.unique_key is null) execute function public.until_locked()`);
  await sql(`create trigger until_waiting before update on runs for each row
    when (old.status = 'executing' and new.status = 'done' and new.unique_key is not null) execute function public.until_waiting()`);
  await user.query("begin");
  const committing = commit(database, child, done(), { patient: false });
  await until("the first try has the parent", async () => {
    const rows = await sql(
      "select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'",
    );
    return rows.length > 0;
  });
  const isLocked = user.query("select from runs where id = $1 for update", [parent.runId]);
  expect(await committing).toMatchObject({ kind: "busy" });
  await isLocked;
  expect(await keyOf(child.runId)).toMatchObject({ unique_key: key("child") });

  await user.query("rollback");
  await sql("drop trigger until_locked on runs");
  await sql("drop trigger until_waiting on runs");
  expect(await commit(database, child, done())).toMatchObject({ kind: "committed", uniqueLost: true });
  expect(await claimOne(database)).toMatchObject({ runId: parent.runId });
});

describe("a start with a scope that leaves out where the run begins", () => {
  it.each([1, 2])("answers the holder, if there is one: %i at once", async (count) => {
    const taken = { uniqueKey: key(`done-${count}`), uniqueScope: ["done"] as const };
    const [holder] = await start(database, taken);
    const again = (): Promise<string[]> => start(database, ...Array.from({ length: count }, () => taken));
    // Nobody is done: it begins.
    expect(await again()).not.toContain(holder);
    const { runs, claimId } = await claim(database);
    const [first, ...others] = runs.map((run) => ({ ...run, claimId }));
    expect(await commit(database, first!, done())).toMatchObject({ kind: "committed", uniqueLost: false });
    expect(await again()).toEqual(Array(count).fill(first!.runId));
    for (const run of others) {
      expect(await commit(database, run, done())).toMatchObject({ kind: "committed", uniqueLost: true });
    }
    await until("nothing is left", async () => (await claim(database)).runs.length === 0);
  });
});
