/**
 * Race-aligned pairs of record and what may come at the same instant: a signal, a cancel, a release, a reap, the end of an invoked
 * run. Whoever comes first, nothing is lost or done twice, and PostgreSQL finds no deadlock.
 */

import { afterAll, expect, it } from "vitest";
import type { JournalEntry, RecordVerdict } from "../../packages/pawl/dist/store/journal.js";
import { testDatabase } from "../support/database.js";
import { anEntry, invoke, ran, suspend, waitFor } from "../support/record.js";
import { done, isLockTimeout, register } from "../support/store.js";
import { until } from "../support/until.js";
import type { Connection } from "./connections.js";
import { lostWakeUps } from "./laws.js";
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
import type { Held } from "./scene.js";

const race = await raceOn(await testDatabase());
const { database, connections, one, other } = race;
const { sql, store } = database;
const minutes = 60_000;
const flow = { kind: "workflow" } as const;

afterAll(async () => {
  expect(await connections.deadlocks()).toBe(0);
});

/** Records for each; what is busy is sent again by the slow lane. Answers by run. */
async function recordEach(
  on: Connection,
  runs: readonly Held[],
  entryOf: (run: Held) => JournalEntry,
): Promise<Map<string, RecordVerdict>> {
  const verdicts = new Map<string, RecordVerdict>();
  let waiting = runs.map(entryOf);
  for (let patient = true; waiting.length > 0; patient = false) {
    const answers = await on.store.record(waiting, { patient });
    for (const [index, { runId }] of waiting.entries()) verdicts.set(runId, answers[index]!);
    waiting = waiting.filter(({ runId }) => verdicts.get(runId)!.kind === "busy");
  }
  return verdicts;
}

const kindOf = (verdict: RecordVerdict | undefined): string => verdict!.kind;
const recordedIn = async (ids: readonly string[]): Promise<Set<string>> => {
  const rows = await sql<{ run_id: string }>("select run_id from steps where run_id = any ($1)", [ids]);
  return new Set(rows.map(({ run_id }) => run_id));
};
const signalAll = (ids: readonly string[], size: number) =>
  spread(other, chunks(shuffled(ids), size), async (on, batch) => {
    const sent = batch.map((runId) => ({ runId, name: "go", payload: `{"to":"${runId}"}`, dedupKey: null }));
    return (await on.store.signal(sent, { patient: true })).verdicts;
  });

const ask = (run: Held, seq: number): JournalEntry => anEntry(run, "wait", seq, waitFor("go"));

it(
  "2,000 workflows that ask for an event and suspend while it is sent all get it, once",
  { timeout: minutes },
  async () => {
    const sizes = [
      { runs: 25, signals: 25 },
      { runs: 1, signals: 1 },
      { runs: 25, signals: 3 },
      { runs: 3, signals: 25 },
    ];
    let early = 0;
    for (let round = 0; round < 20; round++) {
      const { runs: size, signals } = sizes[round % sizes.length]!;
      const runs = await executing(race, 100, flow);
      const got = new Map<string, unknown>();
      const take = (answers: Map<string, RecordVerdict>): void => {
        for (const [runId, verdict] of answers) {
          if (verdict.kind !== "done") continue;
          expect(got.has(runId)).toBe(false);
          got.set(runId, verdict.output);
        }
      };
      const [, delivered] = await aligned(
        () =>
          spread(one, chunks(shuffled(runs), size), async (on, batch) => {
            const answers = await recordEach(on, batch, (run) => ask(run, 1));
            take(answers);
            const pending = batch.filter(({ runId }) => answers.get(runId)!.kind === "pending");
            await commitEach(on, pending, ({ runId }) => {
              const { inboxSeq } = answers.get(runId) as Extract<RecordVerdict, { kind: "pending" }>;
              return suspend(["go"], { after: inboxSeq });
            });
          }),
        () => signalAll(idsOf(runs), signals),
      );
      expect(new Set(delivered.flat())).toEqual(new Set(["delivered"]));
      early += got.size;
      expect(await lostWakeUps(database, "default")).toEqual([]);
      const woken = await claimUpTo(one[0]!, 200);
      take(await recordEach(one[0]!, woken, (run) => ask(run, 2)));
      expect([...got.keys()].toSorted()).toEqual(idsOf(runs).toSorted());
      for (const [runId, payload] of got) expect(payload).toEqual({ to: runId });
      expect(await sql("select from signals where run_id = any ($1)", [idsOf(runs)])).toEqual([]);
      await sql(
        "update runs set status = 'done', locked_by = null, completed_at = now() where id = any ($1)",
        [idsOf(runs)],
      );
    }
    console.info(`suspend and signal: 2000 pairs, ${early} taken before the suspension`);
  },
);

it(
  "1,000 workflows that suspend while the run they have invoked ends are all woken by its one reply",
  { timeout: minutes },
  async () => {
    for (let round = 0; round < 20; round++) {
      const parents = await executing(race, 50, flow);
      const entry = (run: Held, seq: number): JournalEntry =>
        anEntry(run, "child", seq, invoke({ queue: "kids" }));
      const invoked = await recordEach(one[0]!, parents, (run) => entry(run, 1));
      const kids = await claimUpTo(one[0]!, 50, "kids");
      expect(kids).toHaveLength(50);
      const childOf = ({ runId }: Held): string => (invoked.get(runId) as { childId: string }).childId;
      await aligned(
        () =>
          spread(one, chunks(shuffled(parents), round % 2 === 0 ? 1 : 10), (on, batch) =>
            commitEach(on, batch, (run) => suspend([`~${childOf(run)}`])),
          ),
        () =>
          spread(other, chunks(shuffled(kids), round % 3 === 0 ? 1 : 10), (on, batch) =>
            commitEach(on, batch, ({ runId }) => done(runId)),
          ),
      );
      const woken = await claimUpTo(one[0]!, 100);
      expect(idsOf(woken).toSorted()).toEqual(idsOf(parents).toSorted());
      const answers = await recordEach(one[0]!, woken, (run) => entry(run, 2));
      for (const run of parents) {
        expect(answers.get(run.runId)).toMatchObject({ kind: "done", output: Number(childOf(run)) });
      }
      expect(await sql("select from signals where run_id = any ($1)", [idsOf(parents)])).toEqual([]);
      await commitEach(one[0]!, woken, () => done());
    }
  },
);

it.each<[string, (runs: readonly Held[]) => Promise<unknown>]>([
  [
    "cancelled",
    async (runs) => {
      const verdicts = await spread(other, shuffled(idsOf(runs)), async (on, runId) => {
        // A cancel waits 100 ms for a lock. A busy machine may take longer until the other one ends.
        const cancel = () =>
          on.store.cancel(runId, { reason: null, cascade: false }).catch((error: unknown) => {
            if (!isLockTimeout(error)) throw error;
            return null;
          });
        return (await until("the cancel gets its lock", cancel)).verdict;
      });
      expect(new Set(verdicts)).toEqual(new Set(["cancelled"]));
    },
  ],
  [
    "released",
    async (runs) => {
      // What is locked just now is left alone: again.
      for (let left = [...runs]; left.length > 0;) {
        const released = await spread(other, chunks(shuffled(left), 5), (on, batch) =>
          on.store.release(batch),
        );
        const gone = new Set(released.flat());
        left = left.filter(({ runId }) => !gone.has(runId));
      }
    },
  ],
  [
    "reaped",
    async (runs) => {
      for (let left = runs.length; left > 0;) left -= await other[0]!.store.reap(10);
    },
  ],
])(
  "1,000 runs that are %s while they record: what was answered as recorded is there, the rest is not",
  { timeout: minutes },
  async (what, lose) => {
    let recorded = 0;
    for (let round = 0; round < 20; round++) {
      await register(database, "dying");
      const runs = await executing(race, 50, flow, "dying");
      await sql("delete from workers where id = 'dying'");
      const [answers] = await aligned(
        async () =>
          merged(
            await spread(one, chunks(shuffled(runs), round % 2 === 0 ? 1 : 10), (on, batch) =>
              recordEach(on, batch, (run) =>
                round % 4 < 2
                  ? anEntry(run, "step", 1, ran("x"))
                  : anEntry(run, "child", 1, invoke({ queue: "lost" })),
              ),
            ),
          ),
        () => lose(runs),
      );
      const there = await recordedIn(idsOf(runs));
      const children = await sql<{ parent_id: string }>(
        "select parent_id from runs where parent_id = any ($1)",
        [idsOf(runs)],
      );
      const parents = new Set(children.map(({ parent_id }) => parent_id));
      for (const { runId } of runs) {
        const kind = kindOf(answers.get(runId));
        expect(there.has(runId)).toBe(kind !== "stale");
        expect(parents.has(runId)).toBe(kind === "pending");
        if (kind !== "stale") recorded++;
      }
      // The claim is gone for good, whoever came first.
      const late = await recordEach(one[0]!, runs, (run) => anEntry(run, "late", 2, ran("late")));
      expect(new Set([...late.values()].map(kindOf))).toEqual(new Set(["stale"]));
      await sql(
        "update runs set status = 'cancelled', locked_by = null, completed_at = coalesce(completed_at, now())",
      );
    }
    console.info(`record and ${what}: 1000 pairs, ${recorded} recorded first`);
    expect(await store.reap(10)).toBe(0);
  },
);
