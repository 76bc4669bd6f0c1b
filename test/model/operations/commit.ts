/**
 * Commit: applies one outcome of a claim, if its guard (id, claim id, turn, executing) still holds; else nothing,
 * and the answer says whether an earlier sending of it was applied. First the row's lock, then, in a statement with
 * a fresh snapshot, the decision: an await parks only if no match waits in the inbox that its step was not shown.
 */

import {
  commits,
  goOn,
  type Ground,
  lastPlace,
  matching,
  type Program,
  type Progress,
  waits,
} from "../postgres.js";
import type { Call, Outcome, RunRow, SignalRow, Writes } from "../rows.js";
import { inboxes } from "./claim.js";
import { keysOf, letNextIn, runLock, waitForKeys } from "./keys.js";

type CommitCall = Call & { op: "commit" };

export const commit: Program<CommitCall> = {
  /** On its way: a call that was sent again may arrive after the one that replaced it, and after later ones. */
  send: (_call, ground) => goOn(ground, ground.mutant === "park decides while locking" ? "snapshot" : "lock"),

  /** The mutant's locking statement begins, and may have to wait. */
  snapshot: (call, ground) => goOn(ground, "lock", { call: { ...call, snapshot: inboxes(ground.rows) } }),

  lock: (call, ground) =>
    ground.isFree(runLock(call.claim.run))
      ? goOn(ground, "decide", { locks: [runLock(call.claim.run)] })
      : waits,

  decide(call, ground) {
    const { run, claimId, turn } = call.claim;
    const row = ground.rows.runs[run]!;
    const isMine = row !== null && row.claimId === claimId;
    const isTurn = isMine && (row.turn === turn || ground.mutant === "guard without a turn");
    if (!isTurn || row.status !== "executing") {
      return commits(ground, isMine && row.turn === turn + 1 ? "already" : "stale");
    }
    const writes = apply(call, ground, row);
    const isKeyFreed = ground.keyOf(run) !== null && call.outcome.kind !== "keep";
    return isKeyFreed ? goOn(ground, "key", { writes }) : applied(call, ground, writes);
  },

  key: (call, ground) => waitForKeys(ground, keysOf(ground, [call.claim.run])),

  unhold: (call, ground) => applied(call, ground, letNextIn(ground, keysOf(ground, [call.claim.run]))),
};

const applied = (call: CommitCall, ground: Ground, writes: Partial<Writes>): Progress =>
  commits(ground, "committed", { writes, effect: { kind: "applied", call } });

const apply = (call: CommitCall, ground: Ground, row: RunRow): Partial<Writes> => {
  const { run, awaited } = call.claim;
  const { outcome } = call;
  const ended: RunRow = { ...row, turn: row.turn + 1, holder: null };
  switch (outcome.kind) {
    case "keep":
      return {
        runs: { [run]: { ...progressed(ended, outcome.step), status: "executing", holder: row.holder } },
        signals: consumed(
          ground.mutant === "consume what matches" ? matching(ground, run, row.awaits) : awaited,
        ),
      };
    case "next":
      return {
        runs: {
          [run]: { ...progressed(ended, outcome.step), status: "runnable", order: lastPlace(ground.rows) },
        },
        signals: consumed(
          ground.mutant === "consume what matches" ? matching(ground, run, row.awaits) : awaited,
        ),
      };
    case "await":
      return { runs: { [run]: parked(call, ground, outcome, ended) } };
    case "done":
      return {
        runs: { [run]: { ...progressed(ended, row.step), status: "done", due: "never" } },
        signals: consumed(inboxOf(ground, run)),
      };
  }
};

const progressed = (row: RunRow, step: number): RunRow => ({
  ...row,
  step,
  due: "now",
  awaits: null,
  shown: [],
  timedOut: false,
  resolved: null,
});

const parked = (
  call: CommitCall,
  ground: Ground,
  outcome: Outcome & { kind: "await" },
  row: RunRow,
): RunRow => {
  const { run, awaited, loaded } = call.claim;
  const isVisible = (signal: number): boolean =>
    ground.mutant === "park decides while locking"
      ? call.snapshot.includes(signal)
      : ground.mutant !== "park without a recheck" || loaded.includes(signal);
  const shown = ground.mutant === "a shown signal wakes again" ? [] : awaited;
  const isWoken = matching(ground, run, outcome.name).some(
    (signal) => isVisible(signal) && !shown.includes(signal),
  );
  return {
    ...progressed(row, outcome.step),
    awaits: outcome.name,
    shown: awaited,
    status: isWoken ? "runnable" : "awaiting",
    due: isWoken ? "now" : outcome.hasTimeout ? "deadline" : "never",
    order: lastPlace(ground.rows),
  };
};

/** What is in a run's inbox, whatever its name. */
export const inboxOf = (ground: Ground, run: number): number[] =>
  inboxes(ground.rows).filter((signal) => ground.scenario.senders[signal]!.run === run);

export const consumed = (signals: readonly number[]): Record<number, SignalRow> =>
  Object.fromEntries(signals.map((signal) => [signal, "consumed" as const]));
