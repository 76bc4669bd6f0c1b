/**
 * A deadline and a signal at the same instant. The claim that finds the deadline passed decides what the wait is resolved with: a
 * match that is there wins, and a signal that comes later stays in the inbox, whoever claims the run again, and
 * however late its inbox is read. By a barrier in either order, and by hundreds of duels.
 */

import { afterAll, expect, it } from "vitest";
import type { StoredSignal } from "../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../support/database.js";
import { done, next, park, retry } from "../support/store.js";
import { interleave } from "./barrier.js";
import {
  aligned,
  chunks,
  claimUpTo,
  commitEach,
  executing,
  idsOf,
  raceOn,
  shuffled,
  spread,
} from "./race.js";
import { type Held, matchedBy } from "./scene.js";

const race = await raceOn(await testDatabase());
const { database, connections, one, other } = race;
const { sql, store } = database;
const barrier = { first: one[0]!, second: other[0]!, observer: one[1]! };

afterAll(async () => {
  expect(await connections.deadlocks()).toBe(0);
});

const goTo = (runId: string) => ({ runId, name: "go", payload: "{}", dedupKey: null });
const send = (on: typeof barrier.first, runIds: readonly string[]) =>
  on.store.signal(runIds.map(goTo), { patient: true });

/** Runs that wait for "go" and whose deadline has passed, each with this many other signals in its inbox. */
async function due(count: number, others = 0): Promise<string[]> {
  const runs = await executing(race, count);
  for (const { runId } of runs) {
    const signals = Array.from({ length: others }, () => ({ ...goTo(runId), name: "other" }));
    if (others > 0) await store.signal(signals, { patient: true });
  }
  await commitEach(one[0]!, runs, () => park("go", { timeoutMs: 0 }));
  return idsOf(runs);
}

/** The whole inbox of a claimed run, read as its worker reads it. */
async function inboxOf({ runId, inbox, inboxSeq }: Held): Promise<StoredSignal[]> {
  if (inbox !== null) return [...inbox];
  const read: StoredSignal[] = [];
  for (let after = 0; after < inboxSeq;) {
    const page = await store.inbox(runId, { after, upTo: inboxSeq });
    if (page.length === 0) break;
    read.push(...page);
    after = page.at(-1)!.seq;
  }
  return read;
}
const awaitedBy = async (run: Held): Promise<number[]> =>
  (await inboxOf(run)).filter(({ matched }) => matched).map(({ seq }) => seq);

it.each([
  ["that comes along with the claim", 0],
  ["that is read later, in pages", 1_100],
])("a signal that waits for the claim of a timed-out wait is not in its inbox %s", async (_how, others) => {
  const [runId] = await due(1, others);
  const { first, second, waited } = await interleave(barrier, "commits", {
    first: () => claimUpTo(barrier.first, 1),
    second: () => send(barrier.second, [runId!]),
  });
  expect(waited).toBe(true);
  expect(second.verdicts).toEqual(["delivered"]);
  const [run] = first as [Held];
  expect(run).toMatchObject({ runId, timedOut: true, inboxSeq: others });
  expect(await awaitedBy(run)).toEqual([]);
  expect(await inboxOf(run)).toHaveLength(others);

  await store.release([run]);
  const [again] = (await claimUpTo(one[0]!, 1)) as [Held];
  expect(again).toMatchObject({ runId, timedOut: true, inboxSeq: others + 1 });
  expect(await awaitedBy(again)).toEqual([]);
  expect(await inboxOf(again)).toHaveLength(others + 1);

  // The next wait for it finds it.
  await commitEach(one[0]!, [again], () => park("go"));
  const [woken] = (await claimUpTo(one[0]!, 1)) as [Held];
  expect(woken).toMatchObject({ runId, timedOut: false });
  expect(await awaitedBy(woken)).toEqual([others + 1]);
  await commitEach(one[0]!, [woken], () => done());
});

it("a signal that has the run locked when its deadline passes wins", async () => {
  const [runId] = await due(1);
  const { second } = await interleave(barrier, "commits", {
    first: () => send(barrier.first, [runId!]),
    second: () => claimUpTo(barrier.second, 1),
  });
  expect(second).toEqual([]);
  const [run] = (await claimUpTo(one[0]!, 1)) as [Held];
  expect(run).toMatchObject({ runId, timedOut: false });
  expect(matchedBy(run)).toEqual([1]);
  await commitEach(one[0]!, [run], () => done());
});

it("a claim that needs a second look brings the small inboxes of all its runs along", async () => {
  const ids = (await due(60)).toSorted((a, b) => Number(BigInt(a) - BigInt(b)));
  await send(other[0]!, ids);
  await other[1]!.query("begin");
  await other[1]!.query("select 1 from pawl.runs where id = any ($1) for update", [ids.slice(0, 3)]);
  const claimed = await claimUpTo(one[0]!, 50);
  await other[1]!.query("rollback");
  expect(claimed.map(matchedBy)).toEqual(Array.from({ length: 50 }, () => [1]));
  const rest = await claimUpTo(one[0]!, 50);
  expect(idsOf([...claimed, ...rest]).toSorted()).toEqual(ids.toSorted());
  await commitEach(one[0]!, [...claimed, ...rest], () => done());
});

it("in 600 duels each wait ends by its signal or by its timeout, for good", async () => {
  const ways = { "by its signal": 0, "by its timeout": 0 };
  for (let round = 0; round < 6; round++) {
    const ids = await due(100);
    const [claimed] = await aligned(
      () => spread(one, [20, 30, 50, 20, 30, 50], claimUpTo),
      () => spread(other, chunks(shuffled(ids), 7), send),
    );
    const first = [...claimed.flat(), ...(await claimUpTo(one[0]!, 100))];
    expect(idsOf(first).toSorted()).toEqual(ids.toSorted());
    const decided = new Map(first.map(({ runId, timedOut }) => [runId, timedOut]));
    for (const run of first) expect(await awaitedBy(run)).toEqual(run.timedOut ? [] : [1]);

    // Each claim ends without progress: by a release, a retry, or the death of its worker.
    const [released, retried, lost] = [first.slice(0, 30), first.slice(30, 60), first.slice(60)];
    await store.release(released);
    await commitEach(one[0]!, retried, () => retry());
    await sql("update runs set locked_by = 'gone' where id = any ($1)", [idsOf(lost)]);
    expect(await store.reap(1_000)).toBe(lost.length);

    const again = await claimUpTo(one[0]!, 100);
    expect(again).toHaveLength(100);
    for (const run of again) {
      expect(run.timedOut).toBe(decided.get(run.runId));
      expect(await awaitedBy(run)).toEqual(run.timedOut ? [] : [1]);
      expect(await inboxOf(run)).toHaveLength(1);
      ways[run.timedOut ? "by its timeout" : "by its signal"]++;
    }
    await commitEach(one[0]!, again, (run) => next("after", null, { consumed: matchedBy(run) }));
    const after = await claimUpTo(one[0]!, 100);
    for (const run of after) expect(await inboxOf(run)).toHaveLength(decided.get(run.runId) ? 1 : 0);
    await commitEach(one[0]!, after, () => done());
  }
  console.info("600 duels:", ways);
});
