/**
 * Transactions of user code: the user's SQL runs first, then Pawl writes the outcome of the step
 * with its guard, then both are committed. So a slow transaction blocks nobody, and its effects
 * happen exactly once. If the database rolls one back for a reason that is not the step's, the
 * worker runs it again for as long as the claim holds, and that counts as no attempt.
 *
 * `StepTransaction` is `ctx.transaction` of a job or a machine. `commitTransaction` and
 * `RollbackRetries` serve `step.transaction` of workflows too.
 */

import type { Transaction } from "../define/transaction.js";
import { concernsCall, isUnreachable } from "../store/errors.js";
import type { StoreTransaction } from "../store/store.js";
import { RetryDelay } from "../timing/retry-delay.js";
import { InvalidOutcome } from "../values/errors.js";
import type { Execution } from "./execution.js";
import { isNotRetryable } from "./transition.js";

const busyMs = 20;
const busyTries = 50;
/** After so many lost connections the step may be their cause, and they count as its error. */
const maxLosses = 5;

/** The value that a step returns that ran in a transaction: its outcome, to be committed there. */
class TransactionOutcome {
  readonly outcome: unknown;
  readonly opened: StoreTransaction;

  constructor(outcome: unknown, opened: StoreTransaction) {
    this.outcome = outcome;
    this.opened = opened;
  }
}

/** The connection was lost during COMMIT: the outcome of the commit is unknown. */
export class CommitUnknown extends Error {}

/**
 * The transaction is rolled back for a reason that says nothing about its step: somebody has locked
 * the run, or the database refuses the call.
 */
export class RolledBack extends Error {
  /** The user's SQL has changed settings, such as the role, and may be the reason. */
  readonly mayBeItsFault: boolean;

  constructor(message: string, mayBeItsFault: boolean, cause?: unknown) {
    super(message, { cause });
    this.mayBeItsFault = mayBeItsFault;
  }
}

/** The transaction of the present step, if it opens one. */
export class StepTransaction {
  readonly #execution: Execution;
  #opened: StoreTransaction | null = null;
  /** While one is opened, or is to be opened again: the mark of that try. */
  #opening: object | null = null;

  constructor(execution: Execution) {
    this.#execution = execution;
  }

  get isOpen(): boolean {
    return this.#opened !== null;
  }

  /**
   * `ctx.transaction`: runs user code in a transaction, which stays open until its outcome is
   * committed. If the connection is lost, it runs the code again in another one. The step must
   * return the promised value as it is. To the user it has the type of the outcome.
   */
  async run(work: (tx: Transaction) => unknown): Promise<never> {
    if (this.#isBegun()) throw new InvalidOutcome("ctx.transaction can be called once in a step");
    const retries = new RollbackRetries(this.#execution);
    for (;;) {
      const opened = await this.#open();
      try {
        return new TransactionOutcome(await work(opened.tx), opened) as never;
      } catch (error) {
        if (this.#opened !== opened) throw error;
        // It counts as opening, so that the end of the step meanwhile ends this too.
        const mark = {};
        this.#opened = null;
        this.#opening = mark;
        await opened.rollback();
        const isOver = (): boolean => this.#opening !== mark;
        const mayRepeat =
          opened.isLost() &&
          !isNotRetryable(error) &&
          (await retries.mayRepeat(error, { isOver, mayBeItsFault: true }));
        if (!isOver()) this.#opening = null;
        if (!mayRepeat) throw error;
      }
    }
  }

  /** Rolls the transaction back, if the step has one open. */
  async abandon(): Promise<void> {
    this.#opening = null;
    await this.detach()?.rollback();
  }

  /** Takes the open transaction, so that the caller ends it. */
  detach(): StoreTransaction | null {
    const opened = this.#opened;
    this.#opened = null;
    return opened;
  }

  /**
   * The outcome that a step returned. Throws if the step opened a transaction and did not return
   * it.
   */
  outcomeOf(returned: unknown): unknown {
    if (returned instanceof TransactionOutcome && returned.opened === this.#opened) return returned.outcome;
    if (!this.#isBegun()) return returned;
    throw new InvalidOutcome(
      "ctx.transaction was called, but the step did not return what it gave: return ctx.transaction(…)",
    );
  }

  #isBegun(): boolean {
    return this.#opened !== null || this.#opening !== null;
  }

  async #open(): Promise<StoreTransaction> {
    const { store } = this.#execution.services;
    const mark = {};
    this.#opening = mark;
    let opened: StoreTransaction | undefined;
    try {
      opened = await this.#execution.repeatWhileClaimed(() => store.begin());
    } finally {
      if (this.#opening === mark) this.#opening = null;
      else {
        await opened?.rollback();
        opened = undefined;
      }
    }
    if (opened === undefined) throw new Error("the step is over, or the claim on its run was lost");
    this.#opened = opened;
    return opened;
  }
}

/**
 * Counts how often a transaction was rolled back, and decides whether its code may run once more.
 */
export class RollbackRetries {
  readonly #execution: Execution;
  readonly #retryDelay = new RetryDelay();
  #losses = 0;
  #isReported = false;

  constructor(execution: Execution) {
    this.#execution = execution;
  }

  /**
   * Resolves after a delay, with false if the step is over by then or the worker wants it to end.
   * Rollbacks that may be the step's own fault are counted, and after the last none is repeated.
   */
  async mayRepeat(
    error: unknown,
    { isOver, mayBeItsFault }: { isOver: () => boolean; mayBeItsFault: boolean },
  ): Promise<boolean> {
    const { runId, control, services } = this.#execution;
    // A worker that has begun to stop waits for its steps before it tells them.
    const hasEnded = (): boolean => isOver() || control.isEnding;
    if ((mayBeItsFault && this.#losses++ >= maxLosses) || hasEnded()) return false;
    if (!this.#isReported) {
      services.logger.warn(
        { err: error, runId },
        "pawl: a transaction was rolled back, not because of its step: trying again until it is done",
      );
    }
    this.#isReported = true;
    await new Promise((resolve) => setTimeout(resolve, this.#retryDelay.next()));
    return !hasEnded();
  }
}

/**
 * Writes the outcome of a step into its transaction and commits both. Answers the verdict on the
 * outcome; if the outcome was not written, all is rolled back. Throws errors of the step, also
 * those of deferred constraints, `RolledBack`, or `CommitUnknown`. It waits for a lock on the run,
 * but not for long: its holder may wait for a lock of this transaction.
 */
export async function commitTransaction<V extends { readonly kind: string }>(
  opened: StoreTransaction,
  isOver: () => boolean,
  write: () => Promise<V | Busy>,
): Promise<V> {
  // Two that wait for each other must not give way at the same time, again and again.
  const maxTries = busyTries * (0.5 + Math.random() / 2);
  let verdict: V | Busy;
  try {
    verdict = await write();
    for (let tries = 1; isBusy(verdict) && tries < maxTries && !isOver(); tries++) {
      await new Promise((resolve) => setTimeout(resolve, busyMs));
      verdict = await write();
    }
  } catch (error) {
    await opened.rollback();
    throw asRolledBack(error, opened);
  }
  if (isBusy(verdict)) {
    await opened.rollback();
    throw new RolledBack("somebody's open transaction holds the run", false);
  }
  if (verdict.kind !== "committed" && verdict.kind !== "recorded") {
    await opened.rollback();
    return verdict;
  }
  try {
    await opened.commit();
  } catch (error) {
    throw isUnreachable(error)
      ? new CommitUnknown("the connection was lost at the commit", { cause: error })
      : asRolledBack(error, opened);
  }
  return verdict;
}

/** Somebody has locked the run. */
interface Busy {
  readonly kind: "busy";
}

function isBusy(verdict: { readonly kind: string }): verdict is Busy {
  return verdict.kind === "busy";
}

/** `RolledBack` if the error says nothing about the step, else the error. */
function asRolledBack(error: unknown, opened: StoreTransaction): unknown {
  if (!concernsCall(error)) return error;
  return new RolledBack((error as Error).message, opened.hasSettings(), error);
}
