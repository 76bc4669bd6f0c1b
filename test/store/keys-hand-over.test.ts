import { afterEach, describe, expect, it } from "vitest";
import { newClaimId } from "../../packages/pawl/dist/engine/claim-id.js";
import type { NewRun } from "../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../support/database.js";
import { aCommit, claim, claimOne, done, next, register, start } from "../support/store.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
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
const pass = async (run: Held, { bounded = false, transition = done() } = {}): Promise<Held | null> => {
  const claimId = newClaimId();
  const commit = { ...aCommit(run, transition), next: { workerId: "worker", claimId, bounded } };
  const { verdicts } = await store.commit([commit], { patient: true });
  const [verdict] = verdicts;
  expect(verdict).toMatchObject({ kind: "committed" });
  if (verdict?.kind !== "committed" || verdict.handed === null) return null;
  return { ...verdict.handed, claimId };
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

  it("and has just looked at the whole line is handed what is behind the run that ends; the next whole look finds what is ahead", async () => {
    const [, second, third] = await line(3);
    const first = await claimFirst();
    const [urgent] = await line(1, { priority: -1 });
    expect((await claim(database)).runs).toEqual([]);
    const near = await pass(first, { bounded: true });
    expect(near?.runId).toBe(second);
    const found = await pass(near!);
    expect(found?.runId).toBe(urgent);
    expect((await pass(found!, { bounded: true }))?.runId).toBe(third);
  });

  it("and finds nothing behind the run that ends lets in what is ahead", async () => {
    await line(1);
    const first = await claimFirst();
    const [urgent] = await line(1, { priority: -1 });
    expect((await claim(database)).runs).toEqual([]);
    expect(await pass(first, { bounded: true })).toBeNull();
    expect((await claim(database)).runs.map(({ runId }) => runId)).toEqual([urgent]);
  });

  it("is handed the next after an outcome that does not end the run too", async () => {
    const [first, second] = await line(2);
    const run = await claimFirst();
    const handed = await pass(run, { transition: next("later"), bounded: true });
    expect([run.runId, handed?.runId]).toEqual([first, second]);
  });
});
