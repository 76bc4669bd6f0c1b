/**
 * Races on the real functions: batches of two operations on the same runs, sent at the same instant on several connections,
 * in different orders and sizes, a random part of a millisecond apart. Unlike the barrier this decides nothing about who comes
 * first; it finds the windows between two statements of one function that no barrier can hold open.
 */

import { performance } from "node:perf_hooks";
import type {
  Claimed,
  ClaimedRun,
  Commit,
  NewRun,
  Transition,
  Verdict,
} from "../../packages/pawl/dist/store/store.js";
import type { TestDatabase } from "../support/database.js";
import { aCommit, aRun, register } from "../support/store.js";
import { type Connection, type Connections, connectionsTo } from "./connections.js";
import { type Held, newClaimId } from "./scene.js";

export interface Race {
  readonly database: TestDatabase;
  readonly connections: Connections;
  /** Two groups of connections, for the two sides. */
  readonly one: readonly Connection[];
  readonly other: readonly Connection[];
}

export async function raceOn(database: TestDatabase, perSide = 3): Promise<Race> {
  const connections = await connectionsTo(database);
  const open = (): Promise<Connection[]> =>
    Promise.all(Array.from({ length: perSide }, () => connections.open()));
  const race = { database, connections, one: await open(), other: await open() };
  await register(database, "live");
  await database.sql("update settings set beats_since = clock_timestamp() - interval '1 day'");
  return race;
}

export function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

export function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

/** Sends the batches over the connections of a side, each connection its share one after the other. */
export async function spread<T, Answer>(
  side: readonly Connection[],
  batches: readonly T[],
  send: (on: Connection, batch: T) => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  const lanes = side.map(async (on, lane) => {
    for (let index = lane; index < batches.length; index += side.length) {
      answers[index] = await send(on, batches[index]!);
    }
  });
  await Promise.all(lanes);
  return answers;
}

/** Starts both at the same instant, give or take a part of a millisecond, either of them first. */
export async function aligned<One, Other>(
  one: () => Promise<One>,
  other: () => Promise<Other>,
): Promise<[One, Other]> {
  if (Math.random() < 0.5) {
    const [second, first] = await inTurn(other, one);
    return [first, second];
  }
  return inTurn(one, other);
}

function inTurn<One, Other>(one: () => Promise<One>, other: () => Promise<Other>): Promise<[One, Other]> {
  const first = one();
  const until = performance.now() + Math.random() ** 2;
  while (performance.now() < until);
  return Promise.all([first, other()]);
}

/** Starts runs that a worker executes. */
export async function executing(
  { database: { store } }: Race,
  count: number,
  given: Partial<NewRun> = {},
  workerId = "live",
): Promise<Held[]> {
  const claimId = newClaimId();
  const runs = Array.from({ length: count }, () => aRun({ ...given, direct: true }));
  const started = await store.start(runs, { allOrNothing: false, claim: { workerId, claimId } });
  return started.map(({ runId }) => ({ runId, claimId }) as Held);
}

/**
 * Commits the same kind of outcome for each; what is busy is sent again by the slow lane. Answers by run. With `onHanded` the next
 * runs in line for their keys are claimed at once.
 */
export async function commitEach(
  on: Connection,
  runs: readonly Held[],
  outcome: (run: Held) => Transition,
  onHanded?: (run: Held) => void,
): Promise<Map<string, Verdict["kind"]>> {
  const verdicts = new Map<string, Verdict["kind"]>();
  let waiting: Commit[] = runs.map((run) => {
    const next = onHanded ? { workerId: "live", claimId: newClaimId() } : null;
    return { ...aCommit(run, outcome(run)), next };
  });
  for (let patient = true; waiting.length > 0; patient = false) {
    const answer = await on.store.commit(waiting, { patient });
    for (const [index, { runId, next }] of waiting.entries()) {
      const verdict = answer.verdicts[index]!;
      if (verdict.kind === "failed") throw new Error(`run ${runId}: ${verdict.code} ${verdict.message}`);
      if (verdict.kind === "committed" && verdict.handed) {
        onHanded!({ ...verdict.handed, claimId: next!.claimId });
      }
      verdicts.set(runId, verdict.kind);
    }
    waiting = waiting.filter(({ runId }) => verdicts.get(runId) === "busy");
  }
  return verdicts;
}

export async function claimUpTo(on: Connection, limit: number, queue = "default"): Promise<Held[]> {
  const claimId = newClaimId();
  const { runs }: Claimed = await on.store.claim({
    queue,
    limit,
    names: ["counter"],
    versions: [1],
    floor: null,
    workerId: "live",
    claimId,
  });
  return runs.map((run: ClaimedRun) => ({ ...run, claimId }));
}

export const merged = <Value>(maps: readonly Map<string, Value>[]): Map<string, Value> =>
  new Map(maps.flatMap((map) => [...map]));

export const idsOf = (runs: readonly Held[]): string[] => runs.map(({ runId }) => runId);
