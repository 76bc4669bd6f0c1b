/**
 * Claim: reads a page without locks, locks the first run of it that is free and still claimable (SKIP LOCKED), and
 * takes it under a new claim id. A keyed run only after a recheck under the key's lock; else it is blocked.
 * Committed asynchronously: a crash of the database may take it back, so its id must never be given again.
 */

import { commits, goOn, type Ground, matching, type Program, type Progress, waits } from "../postgres.js";
import { type Call, type Database, isClaimable, type RunRow, type State, type Writes } from "../rows.js";
import { block, isKeyTaken, keysOf, letNextIn, runLock, tryKey } from "./keys.js";

type ClaimCall = Call & { op: "claim" };

export const claim: Program<ClaimCall> = {
  look(call, ground) {
    const { runs, workers } = ground.rows;
    const found = runs.flatMap((row, run) => (isClaimable(row) ? [run] : []));
    if (workers[call.worker] !== "live" || found.length === 0) {
      return waits;
    }
    found.sort((a, b) => runs[a]!.order - runs[b]!.order);
    const late =
      ground.mutant === "timeout decided by the page"
        ? found.filter((run) => runs[run]!.status === "awaiting")
        : [];
    return goOn(ground, "lock", { call: { ...call, found, late } });
  },

  lock(call, ground) {
    const { runs } = ground.rows;
    const run = call.found.find(
      (candidate) =>
        runs[candidate] !== null &&
        ground.isFree(runLock(candidate)) &&
        (ground.mutant === "claim without a recheck" || isClaimable(runs[candidate])),
    );
    if (run === undefined) {
      return nothing(ground);
    }
    return goOn(ground, ground.keyOf(run) === null ? "take" : "key", {
      call: { ...call, found: [run] },
      locks: [runLock(run)],
    });
  },

  take: (call, ground) => handOver(ground, take(call, ground)),

  key(call, ground) {
    const locks = tryKey(ground, call.found[0]!);
    return locks === null ? nothing(ground) : goOn(ground, "recheck", { locks });
  },

  recheck(call, ground) {
    const run = call.found[0]!;
    return isKeyTaken(ground, run)
      ? goOn(ground, "let in", block(ground, run))
      : goOn(ground, "hand over", take(call, ground));
  },

  "let in"(call, ground) {
    const writes = letNextIn(ground, keysOf(ground, call.found));
    const locks = Object.keys(writes.runs ?? {}).map((run) => runLock(Number(run)));
    return goOn(ground, "leave", { locks, writes });
  },

  leave: (_call, ground) => nothing(ground),

  "hand over": (call, ground) => handOver(ground, { call, writes: {} }),
};

interface Change {
  readonly call: ClaimCall;
  readonly writes: Partial<Writes>;
}

const nothing = (ground: Ground): Progress => commits(ground, "nothing", { isDurable: false });

const handOver = (ground: Ground, change: Change): Progress =>
  commits(ground, "claimed", {
    ...change,
    effect: { kind: "claimed", run: change.call.found[0]! },
    isDurable: false,
  });

const take = (call: ClaimCall, ground: Ground): Change => {
  const run = call.found[0]!;
  const row = ground.rows.runs[run]!;
  const epoch = unusedEpoch(ground.state);
  const isAnew = ground.mutant === "every claim loads the inbox anew";
  const awaited = (isAnew ? null : row.resolved) ?? matching(ground, run, row.awaits);
  const hasUnshown = awaited.some((signal) => !row.shown.includes(signal));
  const taken: RunRow = {
    ...row,
    status: "executing",
    holder: call.worker,
    claimId: ground.mutant === "guard by a counter" ? row.claimId + 1 : epoch,
    epoch,
    turn: 0,
    timedOut: row.timedOut || (row.status === "awaiting" && !hasUnshown) || call.late.includes(run),
    resolved: row.awaits === null ? null : awaited,
  };
  const { claimId, step, timedOut } = taken;
  const loaded = ground.mutant === "park without a recheck" ? inboxes(ground.rows) : [];
  return {
    call: { ...call, claim: { run, claimId, epoch, turn: 0, step, awaited, timedOut, loaded } },
    writes: { runs: { [run]: taken } },
  };
};

export const inboxes = (rows: Database): number[] =>
  rows.signals.flatMap((signal, i) => (signal === "unconsumed" ? [i] : []));

/** A random claim id: the lowest that nothing names any more stands for it, so that equal states look equal. */
const unusedEpoch = (state: State): number => {
  const used = new Set<number>();
  const use = (named: { readonly epoch: number; readonly claimId: number } | null): void => {
    if (named !== null) {
      used.add(named.epoch).add(named.claimId);
    }
  };
  for (const rows of [state.committed, state.flushed]) {
    rows?.runs.forEach(use);
  }
  for (const process of state.workers) {
    use("claim" in process ? process.claim : null);
  }
  for (const { call } of state.transactions) {
    use("claim" in call ? call.claim : null);
  }
  let epoch = 1;
  while (used.has(epoch)) {
    epoch += 1;
  }
  return epoch;
};
