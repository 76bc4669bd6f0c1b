/**
 * Partition keys. The claim is the key's lock; siblings that a claim found blocked leave the claimable runs until a
 * transition that frees the key lets the next one in again. Whoever blocks or lets in has the key's advisory lock,
 * so neither decides by what the other is about to change. Used by every operation that begins or ends a claim.
 */

import { goOn, type Ground, type Progress, waits } from "../postgres.js";
import { isClaimable, isDue, type RunRow, type Writes } from "../rows.js";

export const runLock = (run: number): string => `run ${run}`;
export const workerLock = (worker: number): string => `worker ${worker}`;
const keyLock = (key: string): string => `key ${key}`;

/** Whether a claim of this run must wait for a sibling: one is held, or is due before it, locked or not. */
export const isKeyTaken = (ground: Ground, run: number): boolean => {
  const { order } = ground.rows.runs[run]!;
  return siblings(ground, ground.keyOf(run)!).some(
    ([sibling, row]) =>
      sibling !== run &&
      (row.holder !== null ||
        (isDue(row) && row.order < order && ground.mutant !== "skip locked decides the order in a key")),
  );
};

/** Takes a run and the crowd of due siblings behind it out of the claimable runs; those that are locked stay. */
export const block = (ground: Ground, run: number): { locks: string[]; writes: Partial<Writes> } => {
  const { order } = ground.rows.runs[run]!;
  const behind = siblings(ground, ground.keyOf(run)!).filter(
    ([sibling, row]) => isClaimable(row) && row.order >= order && ground.isFree(runLock(sibling)),
  );
  return {
    locks: behind.map(([sibling]) => runLock(sibling)),
    writes: {
      runs: Object.fromEntries(behind.map(([sibling, row]) => [sibling, { ...row, isBlocked: true }])),
    },
  };
};

/** Never waits: a claim that cannot have the key's lock leaves the run to whoever has it. */
export const tryKey = (ground: Ground, run: number): string[] | null => {
  if (ground.mutant === "claim without the key's lock") {
    return [];
  }
  const lock = keyLock(ground.keyOf(run)!);
  return ground.isFree(lock) ? [lock] : null;
};

/** After the writes of a transition: on to `unhold` with the key's lock if it has freed a key, else straight on. */
export const waitForKeys = (ground: Ground, keys: readonly string[]): Progress => {
  const locks =
    ground.mutant === "un-hold without the key's lock" ? [] : [...new Set(keys)].toSorted().map(keyLock);
  return locks.every((lock) => ground.isFree(lock)) ? goOn(ground, "unhold", { locks }) : waits;
};

/**
 * In a statement of its own, under the key's lock: lets in exactly the first due sibling of a key that nobody holds.
 * If that row is locked, no other is let in instead, and the repair pass does it.
 */
export const letNextIn = (ground: Ground, keys: readonly string[]): Partial<Writes> => {
  const runs: Record<number, RunRow> = {};
  for (const key of ground.mutant === "no un-hold" ? [] : keys) {
    const rows = siblings(ground, key);
    if (rows.some(([, row]) => row.holder !== null)) {
      continue;
    }
    const [first] = rows.filter(([, row]) => isDue(row)).toSorted(([, a], [, b]) => a.order - b.order);
    if (first !== undefined && first[1].isBlocked && ground.isFree(runLock(first[0]))) {
      runs[first[0]] = { ...first[1], isBlocked: false };
    }
  }
  return { runs };
};

export const keysOf = (ground: Ground, runs: readonly number[]): string[] =>
  runs.flatMap((run) => ground.keyOf(run) ?? []);

const siblings = (ground: Ground, key: string): [number, RunRow][] =>
  ground.rows.runs.flatMap((row, run) =>
    row !== null && ground.keyOf(run) === key ? [[run, row] as [number, RunRow]] : [],
  );
