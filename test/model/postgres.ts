/**
 * As much of Postgres as the protocol relies on: row locks and advisory locks held to the end of a transaction,
 * READ COMMITTED, asynchronous commits that a crash may lose.
 *
 * A micro-step is one statement. It sees what was committed when it begins, and its own transaction's writes; a
 * statement that waits for a lock sees the locked row in its newest version. Writes become visible, and locks free,
 * with the commit. Where the locks that a transaction holds make it impossible for anybody to tell a statement from
 * the commit that follows, both are one micro-step. Used by every operation.
 */

import type { Mutant } from "./mutants.js";
import type { Call, Database, Scenario, State, Transaction, Writes } from "./rows.js";

/** What the laws are told about a commit, beyond the rows before and after. */
export type Effect =
  | { readonly kind: "claimed"; readonly run: number }
  | { readonly kind: "applied"; readonly call: Call & { op: "commit" } }
  | { readonly kind: "reaped"; readonly runs: readonly number[] }
  | { readonly kind: "swept"; readonly runs: readonly number[] };

/** How a micro-step ends: it waits, the transaction goes on, or it commits with an answer for its caller. */
export type Progress =
  | { readonly kind: "waits" }
  | { readonly kind: "goes on"; readonly transaction: Transaction }
  | {
      readonly kind: "commits";
      readonly transaction: Transaction;
      readonly answer: string;
      readonly effect: Effect | null;
      readonly isDurable: boolean;
    };

/** One statement of an operation, given its transaction and what it may know. */
type MicroStep<C extends Call> = (call: C, ground: Ground) => Progress;

/** The steps of an operation by name, the first one first. */
export type Program<C extends Call> = { readonly [name: string]: MicroStep<C> };

/** What a micro-step stands on: its transaction, the committed rows, the locks of others. */
export class Ground {
  readonly transaction: Transaction;
  readonly state: State;
  readonly scenario: Scenario;
  readonly mutant: Mutant | null;
  /** What a statement that begins now sees. */
  readonly rows: Database;

  constructor(transaction: Transaction, state: State, scenario: Scenario, mutant: Mutant | null) {
    this.transaction = transaction;
    this.state = state;
    this.scenario = scenario;
    this.mutant = mutant;
    this.rows = overlay(state.committed, transaction.writes);
  }

  isFree(lock: string): boolean {
    return !this.state.transactions.some((other) => other !== this.transaction && other.locks.includes(lock));
  }

  keyOf(run: number): string | null {
    return this.scenario.runs[run]!.key;
  }
}

export const waits: Progress = { kind: "waits" };

export const goOn = (
  ground: Ground,
  at: string,
  change: { call?: Call; locks?: readonly string[]; writes?: Partial<Writes> } = {},
): Progress => {
  const { transaction } = ground;
  return {
    kind: "goes on",
    transaction: {
      call: change.call ?? transaction.call,
      at,
      locks: change.locks === undefined ? transaction.locks : [...transaction.locks, ...change.locks],
      writes: merge(transaction.writes, change.writes ?? {}),
    },
  };
};

export const commits = (
  ground: Ground,
  answer: string,
  options: { call?: Call; writes?: Partial<Writes>; effect?: Effect | null; isDurable?: boolean } = {},
): Progress => ({
  kind: "commits",
  transaction: {
    ...ground.transaction,
    call: options.call ?? ground.transaction.call,
    writes: merge(ground.transaction.writes, options.writes ?? {}),
  },
  answer,
  effect: options.effect ?? null,
  isDurable: options.isDurable ?? true,
});

/** The state after a commit. One that waits for the disk takes all earlier ones along. */
export const publish = (state: State, transaction: Transaction, isDurable: boolean): State => {
  const committed = overlay(state.committed, transaction.writes);
  return {
    ...state,
    committed,
    flushed: state.flushed === null ? null : isDurable ? committed : state.flushed,
  };
};

/** The place behind all others, for a run that becomes eligible now. */
export const lastPlace = (rows: Database): number =>
  1 + rows.runs.reduce((last, row) => Math.max(last, row?.order ?? 0), 0);

/** The signals in a run's inbox that match, oldest first. */
export const matching = (ground: Ground, run: number, name: string | null): number[] =>
  ground.scenario.senders.flatMap((sender, i) =>
    sender.run === run && sender.name === name && ground.rows.signals[i] === "unconsumed" ? [i] : [],
  );

export const noWrites: Writes = { runs: {}, signals: {}, workers: {} };

const merge = (a: Writes, b: Partial<Writes>): Writes => ({
  runs: b.runs === undefined ? a.runs : { ...a.runs, ...b.runs },
  signals: b.signals === undefined ? a.signals : { ...a.signals, ...b.signals },
  workers: b.workers === undefined ? a.workers : { ...a.workers, ...b.workers },
});

const overlay = (rows: Database, writes: Writes): Database =>
  writes === noWrites
    ? rows
    : {
        runs: replace(rows.runs, writes.runs),
        signals: replace(rows.signals, writes.signals),
        workers: replace(rows.workers, writes.workers),
      };

const replace = <T>(list: readonly T[], changes: { readonly [index: number]: T }): readonly T[] => {
  const changed = Object.keys(changes);
  if (changed.length === 0) {
    return list;
  }
  const copy = [...list];
  for (const index of changed) {
    copy[Number(index)] = changes[Number(index)]!;
  }
  return copy;
};
