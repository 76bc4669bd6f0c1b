/**
 * The laws of the protocol. A law of states holds whenever everybody stops and looks; a law of steps compares the
 * rows before and after a commit. `broken` names the first law that a step has broken, or null. That every run ends
 * if the expected things happen is no law of one state: the search checks it on the whole graph.
 */

import { type Effect } from "./postgres.js";
import type { Successor } from "./protocol.js";
import { isClaimable, isDue, isTerminal, type RunRow, type Scenario, type State } from "./rows.js";

export const broken = (before: State, successor: Successor, scenario: Scenario): string | null => {
  const after = successor.state;
  return (
    brokenByStep(before, after, successor.effect, scenario) ??
    (after.committed === before.committed && after.workers === before.workers
      ? null
      : brokenInState(after, scenario))
  );
};

const brokenInState = (state: State, scenario: Scenario): string | null => {
  const { runs, signals } = state.committed;
  for (const [run, row] of runs.entries()) {
    if (row === null) {
      continue;
    }
    if (
      row.status === "awaiting" &&
      signals.some((_, signal) => isUnshownMatch(state, scenario, signal, run, row))
    ) {
      return `run ${run + 1} is parked while its inbox holds a match that it was not shown`;
    }
    if ((row.holder !== null) !== (row.status === "executing") && row.status !== "cancelled") {
      return `run ${run + 1} is ${row.status} with holder ${row.holder}`;
    }
  }
  const lost = state.senders.findIndex(
    (sender, i) =>
      sender === "accepted" && signals[i] === "absent" && runs[scenario.senders[i]!.run] !== null,
  );
  if (lost >= 0) {
    return `signal ${lost + 1} was accepted and is lost`;
  }
  const held = runs.flatMap((row, run) => (row !== null && row.holder !== null ? [run] : []));
  if (hasSibling(held, scenario)) {
    return "two runs of one key are held at the same time";
  }
  return brokenByView(state) ?? brokenByCode(state, scenario);
};

/** A wait that has timed out shows no more than what its step had seen before: a match would have won. */
const brokenByView = (state: State): string | null => {
  for (const process of state.workers) {
    if (!("claim" in process) || !process.claim.timedOut) {
      continue;
    }
    const { run, epoch, turn, awaited } = process.claim;
    const row = state.committed.runs[run];
    if (row?.status !== "executing" || row.epoch !== epoch || row.turn !== turn) {
      continue;
    }
    const late = awaited.find((signal) => !row.shown.includes(signal));
    if (late !== undefined) {
      return `a step of run ${run + 1} sees a timeout and signal ${late + 1}, which it was not shown before`;
    }
  }
  return null;
};

/** Code runs rightfully while its worker's lease runs and no crash of the database has taken its claim. */
const brokenByCode = (state: State, scenario: Scenario): string | null => {
  const executed = state.workers.flatMap((process, worker) =>
    process.phase === "running" && !process.isLost && state.committed.workers[worker] === "live"
      ? [process.claim.run]
      : [],
  );
  if (new Set(executed).size < executed.length) {
    return "two workers whose leases run execute the same run";
  }
  return hasSibling(executed, scenario) ? "code of two runs of one key runs at the same time" : null;
};

const hasSibling = (runs: readonly number[], scenario: Scenario): boolean => {
  const keys = runs.flatMap((run) => scenario.runs[run]!.key ?? []);
  return new Set(keys).size < keys.length;
};

const brokenByStep = (
  before: State,
  after: State,
  effect: Effect | null,
  scenario: Scenario,
): string | null => {
  if (before.committed === after.committed) {
    return null;
  }
  for (const [run, row] of before.committed.runs.entries()) {
    const now = after.committed.runs[run]!;
    if (row !== null && isTerminal(row) && now !== null && now.status !== row.status) {
      return `run ${run + 1} was ${row.status} and is ${now.status}`;
    }
  }
  switch (effect?.kind) {
    case "claimed":
      return brokenByClaim(before, after, effect.run, scenario);
    case "applied":
      return brokenByOutcome(before, after, effect.call, scenario);
    case "reaped": {
      const robbed = effect.runs.find((run) => {
        const holder = before.committed.runs[run]?.holder;
        return holder !== null && holder !== undefined && before.committed.workers[holder] === "live";
      });
      return robbed === undefined ? null : `run ${robbed + 1} is taken from a worker whose lease runs`;
    }
    case "swept": {
      const swept = effect.runs.map((run) => before.committed.runs[run]!);
      return swept.every((row) => isTerminal(row) && row.holder === null)
        ? null
        : "a run is swept that has not ended";
    }
    case undefined:
      return null;
  }
};

const brokenByClaim = (before: State, after: State, run: number, scenario: Scenario): string | null => {
  const row = before.committed.runs[run]!;
  if (!isClaimable(row)) {
    return `run ${run + 1} is claimed though it is ${(row as RunRow | null)?.status ?? "swept"}`;
  }
  const { key } = scenario.runs[run]!;
  const earlier = before.committed.runs.findIndex(
    (other, i) =>
      key !== null &&
      scenario.runs[i]!.key === key &&
      other !== null &&
      isDue(other) &&
      other.order < row.order,
  );
  if (earlier >= 0) {
    return `run ${run + 1} is claimed before run ${earlier + 1} of the same key, which is due before it`;
  }
  const { timedOut } = after.committed.runs[run]!;
  const hasMatch = scenario.senders.some((_, signal) => isUnshownMatch(before, scenario, signal, run, row));
  return timedOut && !row.timedOut && hasMatch
    ? `run ${run + 1} times out though a match had arrived before`
    : null;
};

const brokenByOutcome = (
  before: State,
  after: State,
  { claim, outcome }: (Effect & { kind: "applied" })["call"],
  scenario: Scenario,
): string | null => {
  const row = before.committed.runs[claim.run]!;
  if (row.epoch !== claim.epoch) {
    return `a stale worker commits its outcome for run ${claim.run + 1}`;
  }
  if (row.turn !== claim.turn) {
    return `an outcome of run ${claim.run + 1} is applied twice`;
  }
  const { signals } = before.committed;
  const consumed = signals.flatMap((signal, i) =>
    signal === "unconsumed" && after.committed.signals[i] === "consumed" ? [i] : [],
  );
  switch (outcome.kind) {
    case "keep":
    case "next":
      return String(consumed) === String(claim.awaited)
        ? null
        : `run ${claim.run + 1} consumes signals [${String(consumed)}] though it was shown [${String(claim.awaited)}]`;
    case "await": {
      const parked = after.committed.runs[claim.run]!;
      const hasUnshown = signals.some((_, i) => isUnshownMatch(before, scenario, i, claim.run, parked));
      return parked.status === "runnable" && !hasUnshown
        ? `run ${claim.run + 1} is woken by what it was shown already`
        : null;
    }
    case "done":
      return null;
  }
};

/** Whether a signal waits in a run's inbox that matches what the row awaits and has not been shown to it. */
const isUnshownMatch = (
  state: State,
  scenario: Scenario,
  signal: number,
  run: number,
  row: RunRow,
): boolean =>
  scenario.senders[signal]!.run === run &&
  scenario.senders[signal]!.name === row.awaits &&
  state.committed.signals[signal] === "unconsumed" &&
  !row.shown.includes(signal);
