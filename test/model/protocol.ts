/**
 * The protocol as a graph: the first state of a scenario, and every state that can follow a given one by a single
 * micro-step of a call, by the beginning of a call, or by something that happens (time, crashes). Nondeterminism is
 * all there is: any process may be arbitrarily slow. The search walks this graph.
 */

import { happenings } from "./faults.js";
import type { Mutant } from "./mutants.js";
import { claim } from "./operations/claim.js";
import { commit } from "./operations/commit.js";
import { cancel, reap, release } from "./operations/ends.js";
import { signal } from "./operations/signal.js";
import { beat, repair, sweep } from "./operations/upkeep.js";
import { type Effect, Ground, noWrites, type Program, publish } from "./postgres.js";
import { begin, hear, workerName } from "./processes.js";
import { type Call, isTerminal, type RunRow, type Scenario, type State, type Transaction } from "./rows.js";

export interface Successor {
  /** What happens, in words; made only for the steps that a trace may need. */
  readonly label: () => string;
  readonly state: State;
  readonly effect: Effect | null;
  /** The answer that a call was given by this step, as "operation: answer". */
  readonly answer: string | null;
  readonly isExpected: boolean;
}

const newRun = (order: number): RunRow => ({
  status: "runnable",
  isBlocked: false,
  due: "now",
  order,
  step: 0,
  awaits: null,
  shown: [],
  timedOut: false,
  resolved: null,
  holder: null,
  claimId: 0,
  turn: 0,
  epoch: 0,
});

export const firstState = (scenario: Scenario): State => {
  const rows = {
    runs: scenario.runs.map((_, run) => newRun(run + 1)),
    signals: scenario.senders.map(() => "absent" as const),
    workers: Array.from({ length: scenario.workers }, () => "live" as const),
  };
  return {
    committed: rows,
    flushed: scenario.budget.databaseCrashes > 0 ? rows : null,
    transactions: [],
    workers: Array.from({ length: scenario.workers }, () => ({ phase: "idle" as const })),
    senders: scenario.senders.map(() => "ready" as const),
    cancels: scenario.cancels,
    budget: scenario.budget,
  };
};

export const successors = (state: State, scenario: Scenario, mutant: Mutant | null): Successor[] => {
  const following: Successor[] = happenings(state).map((happening) => ({
    ...happening,
    effect: null,
    answer: null,
  }));
  for (const beginning of begin(state, scenario)) {
    const at = Object.keys(program(beginning.call))[0]!;
    const transaction: Transaction = { call: beginning.call, at, locks: [], writes: noWrites };
    const taken = take(beginning.state, transaction, scenario, mutant);
    if (taken !== null) {
      following.push({
        ...taken,
        label: () => `${beginning.who}: ${describe(beginning.call)}: ${taken.label()}`,
        isExpected: beginning.isExpected,
      });
    }
  }
  for (const transaction of state.transactions) {
    const taken = take(state, transaction, scenario, mutant);
    if (taken !== null) {
      const who = "worker" in transaction.call ? workerName(transaction.call.worker) : "";
      following.push({
        ...taken,
        label: () => `${who === "" ? "" : `${who}: `}${describe(transaction.call)}: ${taken.label()}`,
        isExpected: true,
      });
    }
  }
  return following;
};

/** Whether nothing is left to do. */
export const isFinished = (state: State): boolean =>
  state.transactions.length === 0 &&
  state.committed.runs.every((row) => row === null || (isTerminal(row) && row.holder === null)) &&
  state.senders.every((sender) => sender === "accepted" || sender === "refused");

/** One micro-step of a transaction, or null if it has to wait. */
const take = (
  state: State,
  transaction: Transaction,
  scenario: Scenario,
  mutant: Mutant | null,
): Omit<Successor, "isExpected"> | null => {
  const step = program(transaction.call)[transaction.at]!;
  const progress = step(transaction.call, new Ground(transaction, state, scenario, mutant));
  const others = state.transactions.filter((other) => other !== transaction);
  switch (progress.kind) {
    case "waits":
      return null;
    case "goes on":
      return {
        label: () => transaction.at,
        state: { ...state, transactions: [...others, progress.transaction] },
        effect: null,
        answer: null,
      };
    case "commits": {
      const published = publish({ ...state, transactions: others }, progress.transaction, progress.isDurable);
      return {
        label: () => `${transaction.at} → ${progress.answer}`,
        state: hear(published, progress.transaction.call, progress.answer),
        effect: progress.effect,
        answer: `${transaction.call.op}: ${progress.answer}`,
      };
    }
  }
};

/** An operation's steps take calls of its own kind, and are given no others. */
const programs: { readonly [O in Call["op"]]: Program<Call & { op: O }> } = {
  claim,
  commit,
  signal,
  cancel,
  release,
  reap,
  beat,
  repair,
  sweep,
};
const program = (call: Call): Program<Call> => programs[call.op] as unknown as Program<Call>;

const describe = (call: Call): string => {
  switch (call.op) {
    case "claim":
      return call.found.length === 0
        ? "claim"
        : `claim of run ${call.found.map((run) => run + 1).join(" or ")}`;
    case "commit":
      return `commit of ${call.outcome.kind} for run ${call.claim.run + 1} (claim ${call.claim.claimId}, turn ${call.claim.turn})`;
    case "release":
      return `release of run ${call.claim.run + 1} (claim ${call.claim.claimId})`;
    case "signal":
      return `signal ${call.sender + 1}`;
    case "cancel":
      return `cancel of run ${call.run + 1}`;
    case "reap":
      return call.dead.length === 0 ? "reap" : `reap of ${call.dead.map(workerName).join(" and ")}`;
    case "beat":
    case "repair":
    case "sweep":
      return call.op;
  }
};
