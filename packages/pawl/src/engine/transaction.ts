/**
 * Transactions of user code: the user's SQL runs first, then the outcome of the step is written with its guard, then both are
 * committed. So a slow transaction blocks nobody, and its effects happen exactly once. Used by the executor (`ctx.transaction`) and by the
 * bodies of workflows (`step.transaction`).
 */

import { InvalidOutcome } from "../define/errors.js";
import type { Transaction } from "../define/transaction.js";
import type { StoreTransaction } from "../store/store.js";
import { isHopeless } from "./attempt.js";
import type { Execution } from "./execution.js";
import { Patience } from "./patience.js";
import type { Surroundings } from "./surroundings.js";

const busyMs = 20;
const busyTries = 50;
/** After so many repetitions, that the database goes away counts as an error of the step: it may be the cause. */
const maxLosses = 5;

const problems = {
  ended: "the transaction was ended by the step itself; leave its end to Pawl",
  failed:
    "a statement in the transaction failed, and its error was not thrown on: nothing of it can be committed",
};

/** What a step returns that ran in a transaction: its outcome, which is to be committed there. */
export class InTransaction {
  readonly outcome: unknown;
  readonly opened: StoreTransaction;

  constructor(outcome: unknown, opened: StoreTransaction) {
    this.outcome = outcome;
    this.opened = opened;
  }
}

/** The transaction was to be committed and the connection was lost: nobody knows whether it is. */
export class CommitUnknown extends Error {}

/**
 * `ctx.transaction`: runs user code in a transaction, which stays open until its outcome is committed; again, in another one, if the
 * database went away with it. Code of a step that is over opens none.
 */
export async function openTransaction(
  execution: Execution,
  around: Surroundings,
  work: (tx: Transaction) => unknown,
): Promise<InTransaction> {
  requireFirst(execution);
  const losses = new Losses(execution, around);
  for (;;) {
    const opened = await open(execution, around);
    try {
      return new InTransaction(await work(opened.tx), opened);
    } catch (error) {
      if (execution.opened !== opened) throw error;
      // Still opening, as far as others can see: whoever ends the step meanwhile ends this too.
      const again = {};
      execution.opened = null;
      execution.opening = again;
      await opened.rollback();
      const isOver = (): boolean => execution.opening !== again;
      const mayRepeat = opened.isLost() && !isHopeless(error) && (await losses.mayRepeat(error, isOver));
      if (!isOver()) execution.opening = null;
      if (!mayRepeat) throw error;
    }
  }
}

/** How often the code of a transaction was called because the database went away with it, and whether it may be called again. */
export class Losses {
  readonly #execution: Execution;
  readonly #around: Pick<Surroundings, "logger" | "isStopping">;
  readonly #patience = new Patience();
  #count = 0;

  constructor(execution: Execution, around: Pick<Surroundings, "logger" | "isStopping">) {
    this.#execution = execution;
    this.#around = around;
  }

  /** Counts one more; resolves after a while, with false if the step is over by then, or this was one too many. */
  async mayRepeat(error: unknown, isOver: () => boolean): Promise<boolean> {
    const { runId } = this.#execution;
    const hasEnded = (): boolean => isOver() || this.#execution.isStopping || this.#around.isStopping();
    if (this.#count++ >= maxLosses || hasEnded()) return false;
    this.#around.logger.warn(
      { err: error, runId },
      "pawl: the connection of a transaction was lost, trying again",
    );
    await new Promise((resolve) => setTimeout(resolve, this.#patience.next()));
    return !hasEnded();
  }
}

function requireFirst({ opened, opening }: Execution): void {
  if (opened === null && opening === null) return;
  throw new InvalidOutcome("ctx.transaction can be called once in a step");
}

async function open(execution: Execution, around: Surroundings): Promise<StoreTransaction> {
  const opening = {};
  execution.opening = opening;
  let opened: StoreTransaction | undefined;
  try {
    opened = await around.patiently(execution, () => around.store.begin());
  } finally {
    if (execution.opening === opening) execution.opening = null;
    else {
      await opened?.rollback();
      opened = undefined;
    }
  }
  if (opened === undefined) throw new Error("the step is over, or the claim on its run was lost");
  execution.opened = opened;
  return opened;
}

/** Rolls back the transaction of a step, if it has one open. */
export async function abandonTransaction(execution: Execution): Promise<void> {
  const { opened } = execution;
  execution.opened = null;
  execution.opening = null;
  await opened?.rollback();
}

/** The outcome that a step returned, and the transaction it belongs to, if it was made in one. */
export function takeOutcome(execution: Execution, returned: unknown): unknown {
  if (returned instanceof InTransaction && returned.opened === execution.opened) return returned.outcome;
  if (execution.opened === null && execution.opening === null) return returned;
  throw new InvalidOutcome(
    "ctx.transaction was called, but the step did not return what it gave: return ctx.transaction(…)",
  );
}

/**
 * Writes the outcome of a step into its transaction and commits both. Gives the verdict on the outcome: if it was not written, all is
 * rolled back. Throws what the database says against it (a deferred constraint), or `CommitUnknown`. Whoever holds the run is
 * waited for, but not for long: it may be waiting for what this transaction holds.
 */
export async function commitTransaction<V extends { readonly kind: string }>(
  opened: StoreTransaction,
  around: Pick<Surroundings, "isOutage">,
  isOver: () => boolean,
  write: () => Promise<V>,
): Promise<V> {
  const status = opened.status();
  if (status !== "open") {
    await opened.rollback();
    throw new InvalidOutcome(problems[status]);
  }
  let verdict: V;
  try {
    verdict = await write();
    for (let tries = 1; verdict.kind === "busy" && tries < busyTries && !isOver(); tries++) {
      await new Promise((resolve) => setTimeout(resolve, busyMs));
      verdict = await write();
    }
  } catch (error) {
    // The driver learns that a transaction has failed a moment after the statement's own error.
    const hasFailed = opened.status() === "failed";
    await opened.rollback();
    throw hasFailed ? new InvalidOutcome(problems.failed, { cause: error }) : error;
  }
  if (verdict.kind !== "committed" && verdict.kind !== "recorded") {
    await opened.rollback();
    if (verdict.kind === "busy") throw new Error("somebody's open transaction holds the run");
    return verdict;
  }
  try {
    await opened.commit();
  } catch (error) {
    throw around.isOutage(error)
      ? new CommitUnknown("the connection was lost at the commit", { cause: error })
      : error;
  }
  return verdict;
}
