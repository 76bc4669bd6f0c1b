/**
 * Transactions of user code: the user's SQL runs first, then the outcome of the step is written
 * with its guard, then both are committed. So a slow transaction blocks nobody, and its effects
 * happen exactly once. One that the database undoes for a reason that is not the step's is done
 * again, for as long as the claim holds, and counts as no attempt. Used by the executor
 * (`ctx.transaction`) and by the bodies of workflows (`step.transaction`).
 */

import { InvalidOutcome } from "../values/errors.js";
import type { Logger } from "../values/logger.js";
import type { Transaction } from "../define/transaction.js";
import { concernsCall, isUnreachable } from "../store/errors.js";
import type { StoreTransaction } from "../store/store.js";
import { isHopeless } from "./transition.js";
import type { Execution } from "./execution.js";
import { RetryDelay } from "../timing/retry-delay.js";
import type { Surroundings } from "./worker-services.js";

const busyMs = 20;
const busyTries = 50;
/** After so many repetitions, that the database goes away counts as an error of the step: it may be the cause. */
const maxLosses = 5;

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
 * The transaction is rolled back, for a reason that says nothing about its step: somebody holds the
 * run, or the database refuses.
 */
export class Undone extends Error {
  /** Its own SQL may be the reason: it has changed settings, such as the role. */
  readonly mayBeItsFault: boolean;

  constructor(message: string, mayBeItsFault: boolean, cause?: unknown) {
    super(message, { cause });
    this.mayBeItsFault = mayBeItsFault;
  }
}

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
      const mayRepeat =
        opened.isLost() &&
        !isHopeless(error) &&
        (await losses.mayRepeat(error, { isOver, mayBeItsFault: true }));
      if (!isOver()) execution.opening = null;
      if (!mayRepeat) throw error;
    }
  }
}

/**
 * How often the code of a transaction was called again because the database undid it, and whether
 * it may be once more.
 */
export class Losses {
  readonly #execution: Execution;
  readonly #logger: Logger;
  readonly #retryDelay = new RetryDelay();
  #count = 0;
  #isTold = false;

  constructor(execution: Execution, { logger }: Pick<Surroundings, "logger">) {
    this.#execution = execution;
    this.#logger = logger;
  }

  /**
   * Resolves after a while, with false if the step is over by then, or the worker wants it to end.
   * What may be the step's own fault is counted, and after so many times is not repeated either.
   */
  async mayRepeat(
    error: unknown,
    { isOver, mayBeItsFault }: { isOver: () => boolean; mayBeItsFault: boolean },
  ): Promise<boolean> {
    const { runId } = this.#execution;
    // A worker that has begun to stop waits for its steps before it tells them.
    const hasEnded = (): boolean => isOver() || this.#execution.aborted || this.#execution.isStopping;
    if ((mayBeItsFault && this.#count++ >= maxLosses) || hasEnded()) return false;
    if (!this.#isTold) {
      const message = "pawl: a transaction was undone by no fault of its step, trying again until it is done";
      this.#logger.warn({ err: error, runId }, message);
    }
    this.#isTold = true;
    await new Promise((resolve) => setTimeout(resolve, this.#retryDelay.next()));
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
 * Writes the outcome of a step into its transaction and commits both. Gives the verdict on the
 * outcome: if it was not written, all is rolled back. Throws what the step did wrong, also what the
 * database says against it (a deferred constraint), `Undone`, or `CommitUnknown`. Whoever holds the
 * run is waited for, but not for long: it may be waiting for what this transaction holds.
 */
export async function commitTransaction<V extends { readonly kind: string }>(
  opened: StoreTransaction,
  isOver: () => boolean,
  write: () => Promise<V>,
): Promise<V> {
  // Two that wait for each other must not give way at the same time, again and again.
  const maxTries = busyTries * (0.5 + Math.random() / 2);
  let verdict: V;
  try {
    verdict = await write();
    for (let tries = 1; verdict.kind === "busy" && tries < maxTries && !isOver(); tries++) {
      await new Promise((resolve) => setTimeout(resolve, busyMs));
      verdict = await write();
    }
  } catch (error) {
    await opened.rollback();
    throw undoneBy(error, opened);
  }
  if (verdict.kind !== "committed" && verdict.kind !== "recorded") {
    await opened.rollback();
    if (verdict.kind === "busy") throw new Undone("somebody's open transaction holds the run", false);
    return verdict;
  }
  try {
    await opened.commit();
  } catch (error) {
    throw isUnreachable(error)
      ? new CommitUnknown("the connection was lost at the commit", { cause: error })
      : undoneBy(error, opened);
  }
  return verdict;
}

/**
 * What it means that an outcome could not be written: `Undone`, or else the error, which is the
 * step's.
 */
function undoneBy(error: unknown, opened: StoreTransaction): unknown {
  if (!concernsCall(error)) return error;
  return new Undone((error as Error).message, opened.hasSettings(), error);
}
