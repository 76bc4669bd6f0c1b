/**
 * Race-aligned pairs on the real functions: 20,000 of park and signal, and 2,000 of each other pair whose order is decided by
 * the database alone. Whoever comes first, the laws hold, and PostgreSQL finds no deadlock.
 */

import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { done, park } from "../support/store.js";
import { parkAndSignal } from "./park-and-signal.js";
import {
  aligned,
  chunks,
  claimUpTo,
  commitEach,
  executing,
  idsOf,
  merged,
  raceOn,
  shuffled,
  spread,
} from "./race.js";
import { type Held, matchedBy } from "./scene.js";

const race = await raceOn(await testDatabase());
const { database, connections, one, other } = race;
const minutes = 60_000;

afterAll(async () => {
  expect(await connections.deadlocks()).toBe(0);
});

const statuses = async (ids: readonly string[]): Promise<Map<string, string>> => {
  const rows = await database.sql<{ id: string; status: string }>(
    "select id, status from runs where id = any ($1)",
    [ids],
  );
  return new Map(rows.map(({ id, status }) => [id, status]));
};

/** Runs that wait for `go`; with `timeoutMs` 0 their time is over. */
const waiting = async (count: number, timeoutMs: number | null): Promise<Held[]> => {
  const runs = await executing(race, count);
  await commitEach(one[0]!, runs, () => park("go", { timeoutMs }));
  return runs;
};

const signalAll = (ids: readonly string[], size: number) =>
  spread(other, chunks(shuffled(ids), size), async (on, batch) => {
    const sent = batch.map((runId) => ({ runId, name: "go", payload: "{}", dedupKey: null }));
    const { verdicts } = await on.store.signal(sent, { patient: true });
    return new Map(batch.map((runId, index) => [runId, verdicts[index]!]));
  });

const cancelAll = (ids: readonly string[]) =>
  spread(other, shuffled(ids), async (on, runId) => {
    const { verdict } = await on.store.cancel(runId, { reason: null, cascade: false });
    return new Map([[runId, verdict]]);
  });

it("20,000 runs that park while they are signalled are all woken", { timeout: 5 * minutes }, async () => {
  const sizes = [
    { parks: 50, signals: 50 },
    { parks: 50, signals: 7 },
    { parks: 10, signals: 50 },
    { parks: 1, signals: 1 },
  ];
  let lost = 0;
  for (let round = 0; round < 100; round++)
    lost += await parkAndSignal(race, 200, sizes[round % sizes.length]!);
  console.info(`park and signal: 20000 pairs, ${lost} lost wake-ups`);
  expect(lost).toBe(0);
});

it(
  "2,000 waits that end by a signal and by their timeout at once end by one, and show the signal once",
  { timeout: minutes },
  async () => {
    let timeouts = 0;
    for (let round = 0; round < 20; round++) {
      const runs = await waiting(100, 0);
      const [claimed] = await aligned(
        async () => (await spread(one, [20, 20, 20, 20, 20, 20], claimUpTo)).flat(),
        () => signalAll(idsOf(runs), 10),
      );
      const shown: string[] = [];
      for (let held = [...claimed, ...(await claimUpTo(one[0]!, 100))]; held.length > 0;) {
        for (const run of held) {
          expect(run.timedOut).toBe(matchedBy(run).length === 0);
          if (run.timedOut) timeouts++;
          else shown.push(run.runId);
        }
        // who has not seen its signal waits again, and finds it in the inbox
        await commitEach(one[0]!, held, (run) => (run.timedOut ? park("go") : done()));
        held = await claimUpTo(one[0]!, 100);
      }
      expect(shown.toSorted()).toEqual(idsOf(runs).toSorted());
    }
    console.info(`signal and timeout: 2000 pairs, ${timeouts} ended by the timeout`);
  },
);

it(
  "2,000 runs that are cancelled while their outcome is committed have one end",
  { timeout: minutes },
  async () => {
    let cancelled = 0;
    for (let round = 0; round < 40; round++) {
      const runs = await executing(race, 50);
      const [committed, cancels] = await aligned(
        async () =>
          merged(
            await spread(one, chunks(shuffled(runs), 1), (on, batch) => commitEach(on, batch, () => done())),
          ),
        async () => merged(await cancelAll(idsOf(runs))),
      );
      const after = await statuses(idsOf(runs));
      const lettingGo = runs.filter(({ runId }) => after.get(runId) === "cancelled");
      for (const { runId } of runs) {
        const isCancelled = after.get(runId) === "cancelled";
        expect([committed.get(runId), cancels.get(runId)]).toEqual(
          isCancelled ? ["stale", "cancelled"] : ["committed", "ended"],
        );
      }
      expect(await database.store.release(lettingGo)).toHaveLength(lettingGo.length);
      expect(await statuses(idsOf(runs))).toEqual(after);
      cancelled += lettingGo.length;
    }
    console.info(`cancel and commit: 2000 pairs, ${cancelled} cancelled`);
  },
);

it(
  "2,000 waiting runs that are cancelled while they are signalled stay cancelled, and keep no signal",
  { timeout: minutes },
  async () => {
    let delivered = 0;
    for (let round = 0; round < 40; round++) {
      const ids = idsOf(await waiting(50, null));
      const [signals, cancels] = await aligned(
        async () => merged(await signalAll(ids, 1)),
        async () => merged(await cancelAll(ids)),
      );
      expect(new Set(cancels.values())).toEqual(new Set(["cancelled"]));
      expect(new Set((await statuses(ids)).values())).toEqual(new Set(["cancelled"]));
      expect(
        [...signals.values()].filter((verdict) => verdict !== "delivered" && verdict !== "ended"),
      ).toEqual([]);
      expect(await database.sql("select from signals where run_id = any ($1)", [ids])).toEqual([]);
      expect(await claimUpTo(one[0]!, 100)).toEqual([]);
      delivered += [...signals.values()].filter((verdict) => verdict === "delivered").length;
    }
    console.info(`cancel and signal: 2000 pairs, ${delivered} delivered first`);
  },
);
