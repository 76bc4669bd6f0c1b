/**
 * The operations that take a run out of its worker's hands without an outcome. Cancel ends the run at once and leaves
 * an executing one to its holder, who still runs its code, until that releases it or is reaped. Release and reap end
 * a claim: executing becomes runnable, cancelled only loses its holder. What frees a key lets the next sibling in.
 */

import { commits, goOn, type Ground, type Program, type Progress, waits } from "../postgres.js";
import { type Call, isDue, isTerminal, type RunRow, type WorkerRow, type Writes } from "../rows.js";
import { consumed, inboxOf } from "./commit.js";
import { keysOf, letNextIn, runLock, waitForKeys, workerLock } from "./keys.js";

export const cancel: Program<Call & { op: "cancel" }> = {
  lock: (call, ground) =>
    ground.isFree(runLock(call.run)) ? goOn(ground, "cancel", { locks: [runLock(call.run)] }) : waits,

  cancel(call, ground) {
    const row = ground.rows.runs[call.run]!;
    if (row === null || isTerminal(row)) {
      return commits(ground, "ended");
    }
    const holder = ground.mutant === "cancel clears the holder" ? null : row.holder;
    const writes: Partial<Writes> = {
      runs: { [call.run]: { ...row, status: "cancelled", due: "never", awaits: null, shown: [], holder } },
      signals: consumed(inboxOf(ground, call.run)),
    };
    const isKeyFreed =
      ground.keyOf(call.run) !== null && holder === null && (isDue(row) || row.holder !== null);
    return isKeyFreed ? goOn(ground, "key", { writes }) : commits(ground, "cancelled", { writes });
  },

  key: (call, ground) => waitForKeys(ground, keysOf(ground, [call.run])),

  unhold: (call, ground) =>
    commits(ground, "cancelled", { writes: letNextIn(ground, keysOf(ground, [call.run])) }),
};

export const release: Program<Call & { op: "release" }> = {
  lock: (call, ground) =>
    ground.isFree(runLock(call.claim.run))
      ? goOn(ground, "let go", { locks: [runLock(call.claim.run)] })
      : waits,

  "let go"(call, ground) {
    const row = ground.rows.runs[call.claim.run]!;
    return row === null || row.claimId !== call.claim.claimId || row.holder === null
      ? commits(ground, "released")
      : letGo(ground, [call.claim.run], (writes) => commits(ground, "released", { writes }));
  },

  key: (call, ground) => waitForKeys(ground, keysOf(ground, [call.claim.run])),

  unhold: (call, ground) =>
    commits(ground, "released", { writes: letNextIn(ground, keysOf(ground, [call.claim.run])) }),
};

type ReapCall = Call & { op: "reap" };

export const reap: Program<ReapCall> = {
  /** Locks the workers whose lease has passed, so that a beat in flight counts, and adds holders without a row. */
  judge(call, ground) {
    const { workers } = ground.rows;
    const isUnlocked = ground.mutant === "reap ignores a beat in flight";
    const lapsed = workers.flatMap((row, worker) =>
      row === "lapsed" && (isUnlocked || ground.isFree(workerLock(worker))) ? [worker] : [],
    );
    const gone =
      ground.mutant === "reap forgets holders without a row"
        ? []
        : workers.flatMap((row, worker) =>
            row === "gone" && heldBy(ground, [worker]).length > 0 ? [worker] : [],
          );
    if (lapsed.length + gone.length === 0) {
      return waits;
    }
    return goOn(ground, "lock", {
      call: { ...call, dead: [...lapsed, ...gone] },
      locks: isUnlocked ? [] : lapsed.map(workerLock),
    });
  },

  lock(call, ground) {
    const runs = heldBy(ground, call.dead).filter((run) => ground.isFree(runLock(run)));
    return goOn(ground, "let go", { call: { ...call, runs }, locks: runs.map(runLock) });
  },

  "let go": (call, ground) => letGo(ground, call.runs, (writes) => reaped(call, ground, writes)),

  key: (call, ground) => waitForKeys(ground, keysOf(ground, call.runs)),

  unhold: (call, ground) => reaped(call, ground, letNextIn(ground, keysOf(ground, call.runs))),
};

/** A worker's row goes only when no run names it. */
const reaped = (call: ReapCall, ground: Ground, writes: Partial<Writes>): Progress => {
  const workers: Record<number, WorkerRow> = {};
  for (const worker of call.dead) {
    if (heldBy(ground, [worker]).every((run) => call.runs.includes(run))) {
      workers[worker] = "gone";
    }
  }
  return commits(ground, "reaped", {
    writes: { ...writes, workers },
    effect: { kind: "reaped", runs: call.runs },
  });
};

const heldBy = (ground: Ground, workers: readonly number[]): number[] =>
  ground.rows.runs.flatMap((row, run) =>
    row !== null && row.holder !== null && workers.includes(row.holder) ? [run] : [],
  );

/** Ends the claims on runs that the transaction has locked. */
const letGo = (
  ground: Ground,
  runs: readonly number[],
  end: (writes: Partial<Writes>) => Progress,
): Progress => {
  const rows: Record<number, RunRow> = {};
  for (const run of runs) {
    const row = ground.rows.runs[run]!;
    rows[run] = { ...row, holder: null, status: row.status === "executing" ? "runnable" : row.status };
  }
  const keys = keysOf(ground, runs);
  return keys.length > 0 ? goOn(ground, "key", { writes: { runs: rows } }) : end({ runs: rows });
};
