/**
 * The processes around the database: workers, senders, cancellers and the upkeep. `begin` lists the calls that each
 * may make now; `hear` is what the caller makes of the answer. A worker never consults its lease: one that lost its
 * claim goes on like any other (a zombie), and only the database keeps it from committing. Called by the protocol.
 */

import type { Call, Claim, ClaimingProcess, Scenario, State, WorkerProcess } from "./rows.js";

export interface Beginning {
  readonly who: string;
  readonly call: Call;
  /** The state in which the call is under way, before its first statement. */
  readonly state: State;
  /** Whether it will happen in time if nothing goes wrong. Faults, and what a zombie does, will not. */
  readonly isExpected: boolean;
}

export const workerName = (worker: number): string => `worker ${"ABCD"[worker]}`;

export const begin = (state: State, scenario: Scenario): Beginning[] => [
  ...state.workers.flatMap((process, worker) => beginWorker(state, scenario, process, worker)),
  ...state.senders.flatMap((sender, i): Beginning[] =>
    sender === "ready"
      ? [
          {
            who: `sender ${i + 1}`,
            call: { op: "signal", sender: i },
            state: { ...state, senders: state.senders.with(i, "sending") },
            isExpected: true,
          },
        ]
      : [],
  ),
  ...state.cancels.map((run): Beginning => ({
    who: "somebody",
    call: { op: "cancel", run },
    state: { ...state, cancels: state.cancels.filter((other) => other !== run) },
    isExpected: false,
  })),
  ...beginUpkeep(state, scenario),
];

const beginWorker = (
  state: State,
  scenario: Scenario,
  process: WorkerProcess,
  worker: number,
): Beginning[] => {
  if (process.phase === "dead") {
    return [];
  }
  const who = workerName(worker);
  const isExpected = state.committed.workers[worker] === "live";
  const calls = state.transactions
    .map(({ call }) => call)
    .filter((call) => "worker" in call && call.worker === worker);
  const isBusy = calls.some((call) => call.op !== "beat" && (call.op !== "commit" || call.isHeard));
  const beginnings: Beginning[] = [];
  if (state.budget.beats > 0 && !calls.some((call) => call.op === "beat")) {
    beginnings.push({ who, call: { op: "beat", worker }, state: spend(state, "beats"), isExpected: false });
  }
  switch (process.phase) {
    case "idle":
      if (!isBusy) {
        const call: Call = { op: "claim", worker, found: [], late: [], claim: null };
        beginnings.push({ who, call, state, isExpected });
      }
      break;
    case "running":
      beginnings.push(send(state, scenario, process, worker, isExpected));
      if (state.committed.runs[process.claim.run]?.status === "cancelled") {
        beginnings.push(release(state, process, worker, isExpected));
      } else if (state.budget.stops > 0) {
        beginnings.push(release(spend(state, "stops"), process, worker, false));
      }
      break;
    case "sent":
      if (!isBusy) {
        beginnings.push(send(state, scenario, process, worker, isExpected));
      } else if (state.budget.resends > 0) {
        beginnings.push(send(unheard(spend(state, "resends"), worker), scenario, process, worker, false));
      }
      break;
    case "releasing":
      if (!isBusy) {
        beginnings.push(release(state, process, worker, isExpected));
      }
      break;
  }
  return beginnings;
};

const send = (
  state: State,
  scenario: Scenario,
  process: ClaimingProcess,
  worker: number,
  isExpected: boolean,
): Beginning => {
  const { claim } = process;
  const outcome = scenario.runs[claim.run]!.body(claim.step, claim.awaited.length, claim.timedOut);
  return {
    who: workerName(worker),
    call: { op: "commit", worker, claim, outcome, isHeard: true, snapshot: [] },
    state: setWorker(state, worker, { ...process, phase: "sent" }),
    isExpected,
  };
};

/** The first sending of an outcome is still on its way; nobody listens to it, and it may arrive after the second. */
const unheard = (state: State, worker: number): State => ({
  ...state,
  transactions: state.transactions.map((transaction) =>
    transaction.call.op === "commit" && transaction.call.worker === worker
      ? { ...transaction, call: { ...transaction.call, isHeard: false } }
      : transaction,
  ),
});

const release = (state: State, process: ClaimingProcess, worker: number, isExpected: boolean): Beginning => ({
  who: workerName(worker),
  call: { op: "release", worker, claim: process.claim },
  state: setWorker(state, worker, { ...process, phase: "releasing" }),
  isExpected,
});

const beginUpkeep = (state: State, scenario: Scenario): Beginning[] => {
  const isUnderWay = (op: Call["op"]): boolean => state.transactions.some(({ call }) => call.op === op);
  const beginnings: Beginning[] = [];
  if (!isUnderWay("reap")) {
    beginnings.push({ who: "reaper", call: { op: "reap", dead: [], runs: [] }, state, isExpected: true });
  }
  if (scenario.hasRepair && !isUnderWay("repair")) {
    const blocked = state.committed.runs.flatMap((row, run) =>
      row?.isBlocked ? [scenario.runs[run]!.key!] : [],
    );
    for (const key of new Set(blocked)) {
      beginnings.push({ who: "repair", call: { op: "repair", key }, state, isExpected: true });
    }
  }
  if (scenario.hasSweep && !isUnderWay("sweep")) {
    beginnings.push({ who: "sweeper", call: { op: "sweep", runs: [] }, state, isExpected: false });
  }
  return beginnings;
};

/** What the caller does with the answer. */
export const hear = (state: State, call: Call, answer: string): State => {
  switch (call.op) {
    case "claim":
      return call.claim !== null && answer === "claimed"
        ? setWorker(state, call.worker, { phase: "running", claim: call.claim, isLost: false })
        : state;
    case "commit":
      return call.isHeard ? hearVerdict(state, call, answer) : state;
    case "release":
      return setWorker(state, call.worker, { phase: "idle" });
    case "beat":
      return answer === "alive" ? state : setWorker(state, call.worker, { phase: "dead" });
    case "signal":
      return {
        ...state,
        senders: state.senders.with(call.sender, answer === "accepted" ? "accepted" : "refused"),
      };
    case "cancel":
    case "reap":
    case "repair":
    case "sweep":
      return state;
  }
};

const hearVerdict = (state: State, call: Call & { op: "commit" }, verdict: string): State => {
  const process = state.workers[call.worker]!;
  if (process.phase !== "sent") {
    return state;
  }
  if (verdict === "stale") {
    return setWorker(state, call.worker, { ...process, phase: "releasing" });
  }
  if (call.outcome.kind !== "keep") {
    return setWorker(state, call.worker, { phase: "idle" });
  }
  const { claim, outcome } = call;
  const next: Claim = { ...claim, turn: claim.turn + 1, step: outcome.step, awaited: [], timedOut: false };
  return setWorker(state, call.worker, { ...process, phase: "running", claim: next });
};

export const setWorker = (state: State, worker: number, process: WorkerProcess): State => ({
  ...state,
  workers: state.workers.with(worker, process),
});

export const spend = (state: State, what: keyof State["budget"]): State => ({
  ...state,
  budget: { ...state.budget, [what]: state.budget[what] - 1 },
});
