/**
 * One attempt at `step.transaction`: the user's SQL, then the journal entry, then the commit of
 * both. A transaction that was lost with its connection counts as no attempt. Used by the body,
 * which has the outcome delivered.
 */

import { failedStep } from "../store/failed-write.js";
import type { Json } from "../values/json-types.js";
import type { JournalChange, JournalEntry } from "../store/journal.js";
import type { StoreTransaction } from "../store/store.js";
import { failed, perform, type Performed } from "./attempt.js";
import type { Execution } from "../run/execution.js";
import type { StepCall, Work } from "./step-call.js";
import type { Answered } from "./step-journal.js";
import { CommitUnknown, commitTransaction, RolledBack, RollbackRetries } from "../run/transaction.js";

export type Transacted =
  /**
   * It was rolled back, and this must be recorded instead. `seq`: that of an entry that was not
   * written.
   */
  | {
      readonly kind: "performed";
      readonly performed: Performed;
      readonly seq: number | null;
      /** It was rolled back, and not because of the step: it may run again. */
      readonly rolledBack: Pick<RolledBack, "mayBeItsFault"> | null;
    }
  /** The entry was answered: recorded and committed, or not recorded and rolled back. */
  | {
      readonly kind: "written";
      readonly seq: number;
      readonly verdict: Answered;
      readonly value: Json | null;
    }
  /** The connection was lost at the commit. */
  | { readonly kind: "unknown"; readonly seq: number }
  /** The claim is gone. */
  | { readonly kind: "lost" };

export interface TransactionHost {
  isDead(): boolean;
  /** A new entry for the journal, with its place in the order of delivery. */
  newEntry(change: JournalChange): JournalEntry;
  /** The entry of this seq will not be recorded. */
  giveUp(seq: number): void;
}

export async function transact(
  call: StepCall,
  work: Work,
  execution: Execution,
  host: TransactionHost,
): Promise<Transacted> {
  const retries = new RollbackRetries(execution);
  for (;;) {
    const done = await transactOnce(call, work, execution, host);
    if (done.kind !== "performed") return done;
    if (done.seq !== null) host.giveUp(done.seq);
    const { performed, rolledBack } = done;
    if (rolledBack === null || performed.isNotRetryable) return done;
    const { mayBeItsFault } = rolledBack;
    const isOver = (): boolean => host.isDead();
    if (!(await retries.mayRepeat(performed.entry.error, { isOver, mayBeItsFault }))) return done;
  }
}

async function transactOnce(
  call: StepCall,
  work: Work,
  execution: Execution,
  host: TransactionHost,
): Promise<Transacted> {
  const { services } = execution;
  const begunMs = performance.now();
  let opened: StoreTransaction | undefined;
  try {
    opened = await execution.repeatWhileClaimed(() => services.store.begin());
  } catch (error) {
    return { kind: "performed", performed: failed(call, work, error, begunMs), seq: null, rolledBack: null };
  }
  if (opened === undefined) return { kind: "lost" };
  const transaction = opened;
  const performed = await perform(call, work, execution, transaction.tx);
  if (performed.entry.error !== null || host.isDead()) {
    await opened.rollback();
    return {
      kind: "performed",
      performed,
      seq: null,
      rolledBack: opened.isLost() ? { mayBeItsFault: true } : null,
    };
  }
  const entry = host.newEntry(performed.entry);
  const { seq } = entry;
  try {
    const verdict = await commitTransaction(
      opened,
      () => host.isDead(),
      () => transaction.record(entry),
    );
    if (verdict.kind === "failed") throw failedStep(verdict);
    return { kind: "written", seq, verdict, value: performed.value };
  } catch (error) {
    if (!(error instanceof CommitUnknown)) {
      const rolledBack = error instanceof RolledBack ? error : null;
      return {
        kind: "performed",
        performed: failed(call, work, rolledBack?.cause ?? error, begunMs),
        seq,
        rolledBack,
      };
    }
    services.logger.warn(
      { err: error, step: call.name },
      "pawl: commit outcome unknown: the connection was lost during COMMIT",
    );
    return { kind: "unknown", seq };
  }
}
