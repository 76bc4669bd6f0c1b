/**
 * Signal: locks its live target, whatever that is doing, then inserts and wakes it if it awaits this name. Without
 * the lock first, a run that parks at the same instant sees no signal, and the signal sees no parked run.
 */

import { commits, goOn, type Ground, lastPlace, type Program, type Progress, waits } from "../postgres.js";
import { type Call, isTerminal, type RunRow, type Writes } from "../rows.js";
import { runLock } from "./keys.js";

type SignalCall = Call & { op: "signal" };

export const signal: Program<SignalCall> = {
  begin: (call, ground) =>
    ground.mutant === "status-filtered wake"
      ? goOn(ground, "filter", { writes: { signals: { [call.sender]: "unconsumed" } } })
      : lock(call, ground),

  deliver(call, ground) {
    const { run, name } = ground.scenario.senders[call.sender]!;
    const row = ground.rows.runs[run]!;
    if (row === null || isTerminal(row)) {
      return commits(ground, "refused");
    }
    const isWoken = row.status === "awaiting" && row.awaits === name;
    return accepted(call, ground, isWoken ? { runs: { [run]: woken(ground, row) } } : {});
  },

  /** The mutant's `update … where status = 'awaiting_signal'` waits only for a row that qualifies. */
  filter(call, ground) {
    const { run, name } = ground.scenario.senders[call.sender]!;
    const row = ground.rows.runs[run]!;
    return row?.status === "awaiting" && row.awaits === name ? lock(call, ground) : goOn(ground, "end");
  },

  end: (call, ground) => accepted(call, ground, {}),
};

const lock = (call: SignalCall, ground: Ground): Progress => {
  const { run } = ground.scenario.senders[call.sender]!;
  return ground.isFree(runLock(run)) ? goOn(ground, "deliver", { locks: [runLock(run)] }) : waits;
};

const accepted = (call: SignalCall, ground: Ground, writes: Partial<Writes>): Progress =>
  commits(ground, "accepted", {
    writes: { ...writes, signals: { [call.sender]: "unconsumed" } },
    isDurable: ground.mutant !== "signal commits asynchronously",
  });

const woken = (ground: Ground, row: RunRow): RunRow => ({
  ...row,
  status: "runnable",
  due: "now",
  order: row.due === "now" ? row.order : lastPlace(ground.rows),
});
