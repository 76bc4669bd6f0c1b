import { afterEach, describe, expect, it } from "vitest";
import { newClaimId } from "../../../packages/pawl/dist/values/claim-id.js";
import type { NewRun, Transition } from "../../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../../support/database.js";
import { aCommit, claim, claimOne, done, next, register, signal, start } from "../../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
await store.register({
  workerId: "elsewhere",
  leaseMs: 600_000,
  queues: ["default", "mail"],
  info: "{}",
  definitions: ["counter", "other"].map((name) => ({
    name,
    version: 1,
    kind: "machine",
    queue: "default",
    priority: 0,
    retentionMs: 1,
  })),
});
afterEach(() => sql("delete from runs"));

const line = (count: number, given: Partial<NewRun> = {}): Promise<string[]> =>
  start(database, ...Array.from({ length: count }, () => ({ partitionKey: "a", ...given })));
/** The first of the line, claimed; the others are put aside. */
const claimFirst = async () => {
  const first = await claimOne(database);
  expect((await claim(database)).runs).toEqual([]);
  return first;
};
type Held = Awaited<ReturnType<typeof claimOne>>;
/** Ends a run and offers to take the next of its key. */
const pass = async (run: Held, transition: Transition = done()): Promise<Held | null> => {
  const claimId = newClaimId();
  const commit = { ...aCommit(run, transition), next: { workerId: "worker", claimId } };
  const { verdicts } = await store.commit([commit], { patient: true });
  const [verdict] = verdicts;
  expect(verdict).toMatchObject({ kind: "committed" });
  if (verdict?.kind !== "committed" || verdict.handed === null) return null;
  return { ...verdict.handed, claimId };
};
const phases = async (ids: readonly string[]): Promise<string[]> => {
  const rows = await sql<{ status: string }>(
    "select r.status from unnest($1::bigint[]) with ordinality u(id, o) join runs r on r.id = u.id order by u.o",
    [ids],
  );
  return rows.map(({ status }) => status);
};

describe("who frees a key and offers to go on", () => {
  it("is handed the next in line, one after the other, to the end", async () => {
    const ids = await line(4);
    const passed: string[] = [];
    for (let run: Held | null = await claimFirst(); run !== null; run = await pass(run))
      passed.push(run.runId);
    expect(passed).toEqual(ids);
  });

  it("is handed a run that has got a place further ahead meanwhile", async () => {
    const [, second] = await line(3);
    const first = await claimFirst();
    const [urgent] = await line(1, { priority: -1 });
    expect((await claim(database)).runs).toEqual([]);
    const handed = await pass(first);
    expect(handed?.runId).toBe(urgent);
    expect((await pass(handed!))?.runId).toBe(second);
  });

  it("is handed the next after an outcome that does not end the run too", async () => {
    const [first, second] = await line(2);
    const run = await claimFirst();
    const handed = await pass(run, next("later"));
    expect([run.runId, handed?.runId]).toEqual([first, second]);
  });
  it("is handed it as claim would hand it out", async () => {
    const given = { input: '{"n":[1,"zwei"]}', priority: 3, trace: "00-aa-bb-01", retentionMs: 5_000 };
    const [, second] = await line(2, given);
    const { claimId: _first, ...handed } = (await pass(await claimFirst()))!;
    await sql("delete from runs");
    await line(1, given);
    const { claimId: _second, ...claimed } = await claimOne(database);
    expect(handed).toEqual({ ...claimed, runId: second, startedMs: handed.startedMs });
  });

  const changes: Record<string, (id: string) => Promise<unknown>> = {
    "is cancelled": (id) => store.cancel(id, { reason: null, cascade: false }),
    "is not due any more": (id) =>
      sql("update runs set eligible_at = eligible_at + interval '1 hour' where id = $1", [id]),
    "is held": (id) => sql("update runs set hold = hold | 4 where id = $1", [id]),
    "has another key": (id) => sql("update runs set partition_key = 'b' where id = $1", [id]),
    "has ended": (id) => sql("update runs set status = 'done', hold = 0 where id = $1", [id]),
    "is of another queue": (id) => sql("update runs set queue = 'mail' where id = $1", [id]),
    "is of a definition that another serves": (id) =>
      sql("update runs set name = 'other' where id = $1", [id]),
    "is of a queue that nobody serves": (id) =>
      sql("update runs set queue = 'void', eligible_at = eligible_at - interval '2 minutes' where id = $1", [
        id,
      ]),
    "is of a definition that nobody serves": (id) =>
      sql("update runs set name = 'ghost', eligible_at = eligible_at - interval '2 minutes' where id = $1", [
        id,
      ]),
    "is gone": (id) => sql("delete from runs where id = $1", [id]),
  };
  it.each(Object.entries(changes))("is not handed it, if that %s", async (what, change) => {
    const [, second, third] = await line(3);
    const first = await claimFirst();
    await change(second!);
    const handed = await pass(first);
    // Another worker serves it: it is still the first in line.
    const isInLine = what.startsWith("is of") && what.includes("another");
    expect(handed?.runId).toBe(isInLine ? undefined : third);
    expect(await sql("select id from runs where locked_by is not null")).toEqual(
      isInLine ? [] : [{ id: third }],
    );
  });

  const wanted: Record<string, (id: string) => Promise<unknown>> = {
    "has got a signal": (id) => signal(database, id, "go"),
    "has crashed before": (id) => sql("update runs set crashes = 2, attempt = 2 where id = $1", [id]),
    "has failed before": (id) =>
      sql(`update runs set error = '{"name":"E"}', attempt = 1 where id = $1`, [id]),
  };
  it.each(Object.entries(wanted))("is handed it with all that it has, if it %s", async (_what, change) => {
    const [, second] = await line(2);
    const first = await claimFirst();
    await change(second!);
    const before = await sql("select crashes, attempt, error, inbox_seq from runs where id = $1", [second]);
    const handed = await pass(first);
    expect(handed).toMatchObject({
      runId: second,
      attempt: before[0]!["attempt"],
      crashes: before[0]!["crashes"],
    });
    expect(handed!.inbox).toHaveLength(Number(before[0]!["inbox_seq"]));
    expect(await sql("select crashes, attempt, error, inbox_seq from runs where id = $1", [second])).toEqual(
      before,
    );
  });

  it("gets nothing and writes nothing with a claim that is gone", async () => {
    const [, second] = await line(2);
    const first = await claimFirst();
    const commit = {
      ...aCommit({ ...first, claimId: newClaimId() }, done()),
      next: { workerId: "worker", claimId: newClaimId() },
    };
    const { verdicts } = await store.commit([commit], { patient: true });
    expect(verdicts).toEqual([{ kind: "stale" }]);
    expect(await phases([first.runId, second!])).toEqual(["executing", "runnable"]);
    expect((await pass(first))?.runId).toBe(second);
  });

  it("gets nothing once its lease has passed", async () => {
    const [, second] = await line(2);
    const first = await claimFirst();
    await sql("update workers set seen_at = seen_at - interval '1 day' where id = 'worker'");
    expect(await pass(first)).toBeNull();
    expect(await phases([first.runId, second!])).toEqual(["done", "runnable"]);
    await sql("update workers set seen_at = clock_timestamp() where id = 'worker'");
  });

  it("gets nothing while the database is held; nor is a run handed over to itself", async () => {
    const [, second] = await line(2);
    const first = await claimFirst();
    await sql("select set_held(true)");
    expect(await pass(first)).toBeNull();
    await sql("select set_held(false)");
    const run = await claimOne(database);
    expect(await pass(run)).toBeNull();
    expect(await phases([first.runId, second!])).toEqual(["done", "done"]);
  });

  it("does not wait for a next run that somebody has locked, and lets nobody in before it", async () => {
    const [, second, third] = await line(3);
    const first = await claimFirst();
    const locker = await database.connect();
    await locker.query("begin");
    await locker.query("select from runs where id = $1 for update", [second]);
    expect(await pass(first)).toBeNull();
    expect(await phases([first.runId, second!, third!])).toEqual(["done", "runnable", "runnable"]);
    await locker.query("commit");
    await store.repairKeys(null, 100);
    expect((await claimOne(database)).runId).toBe(second);
  });
});
