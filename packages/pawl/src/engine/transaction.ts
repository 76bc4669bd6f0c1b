/**
 * Transactions of user code: the user's SQL runs first, then the outcome of the step is written with its guard, then both are
 * committed. So a slow transaction blocks nobody, and its effects happen exactly once. Used by the executor (`ctx.transaction`) and by the
 * bodies of workflows (`step.transaction`).
 */

import { InvalidOutcome } from "../define/errors.js";
import type { Transaction } from "../define/transaction.js";
import type { StoreTransaction } from "../store/store.js";
import type { Execution } from "./execution.js";
import type { Surroundings } from "./surroundings.js";

const busyMs = 20;

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

/** `ctx.transaction`: runs user code in a transaction, which stays open until its outcome is committed. */
export async function openTransaction(
  execution: Execution,
  around: Surroundings,
  work: (tx: Transaction) => unknown,
): Promise<InTransaction> {
  if (execution.opened !== null) throw new InvalidOutcome("ctx.transaction can be called once in a step");
  const opened = await around.patiently(execution, () => around.store.begin());
  if (opened === undefined) throw new Error("the claim on this run was lost");
  execution.opened = opened;
  try {
    return new InTransaction(await work(opened.tx), opened);
  } catch (error) {
    await abandonTransaction(execution);
    throw error;
  }
}

/** Rolls back the transaction of a step, if it has one open. */
export async function abandonTransaction(execution: Execution): Promise<void> {
  const { opened } = execution;
  execution.opened = null;
  await opened?.rollback();
}

/** The outcome that a step returned, and the transaction it belongs to, if it was made in one. */
export function takeOutcome(execution: Execution, returned: unknown): unknown {
  if (returned instanceof InTransaction && returned.opened === execution.opened) return returned.outcome;
  if (execution.opened === null) return returned;
  throw new InvalidOutcome(
    "ctx.transaction was called, but the step did not return what it gave: return ctx.transaction(…)",
  );
}

/**
 * Writes the outcome of a step into its transaction and commits both. Gives the verdict on the outcome: if it was not written, all is
 * rolled back. Throws what the database says against the commit (a deferred constraint), or `Unavailable`: nobody knows whether it is
 * committed.
 */
export async function commitTransaction<V extends { readonly kind: string }>(
  opened: StoreTransaction,
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
    // Somebody's open transaction holds the run: a signal in flight.
    while (verdict.kind === "busy") {
      await new Promise((resolve) => setTimeout(resolve, busyMs));
      verdict = await write();
    }
  } catch (error) {
    // The driver learns that a transaction has failed a moment after the statement's own error.
    const hasFailed = opened.status() === "failed";
    await opened.rollback();
    throw hasFailed ? new InvalidOutcome(problems.failed, { cause: error }) : error;
  }
  if (verdict.kind === "committed" || verdict.kind === "recorded") await opened.commit();
  else await opened.rollback();
  return verdict;
}
