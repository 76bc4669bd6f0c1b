/**
 * One attempt at `step.transaction`: the user's SQL, then the journal entry, then the commit of both. A transaction that the database has
 * taken along when it went away is no attempt. Used by the body, which has the outcome delivered.
 */

import { Forbidden, InvalidOutcome, type PawlError } from "../values/errors.js";
import type { Json } from "../values/json-types.js";
import type { JournalChange, JournalEntry, RecordVerdict } from "../store/journal.js";
import type { StoreTransaction } from "../store/store.js";
import { failed, perform, type Performed } from "./attempt.js";
import type { Execution } from "../run/execution.js";
import type { StepCall, Work } from "./step-call.js";
import type { Surroundings } from "../run/worker-services.js";
import { CommitUnknown, commitTransaction, Losses, Undone } from "../run/transaction.js";

export type Transacted =
  /** It was rolled back, and this is to be recorded instead. `seq`: that of an entry which came to nothing. */
  | {
      readonly kind: "performed";
      readonly performed: Performed;
      readonly seq: number | null;
      /** The database has undone it: it may be done again. */
      readonly undone: Pick<Undone, "mayBeItsFault"> | null;
    }
  /** The entry was answered: recorded, and all is committed, or not, and all is rolled back. */
  | {
      readonly kind: "written";
      readonly seq: number;
      readonly verdict: Exclude<RecordVerdict, { kind: "failed" }>;
      readonly value: Json | null;
    }
  /** The connection was lost at the commit. */
  | { readonly kind: "unknown"; readonly seq: number }
  /** The claim is gone. */
  | { readonly kind: "lost" };

export interface TransactionHost {
  isDead(): boolean;
  /** The entry for the journal, with its place in the order of delivery. */
  entryOf(change: JournalChange): JournalEntry;
  /** The entry of that place came to nothing. */
  giveUp(seq: number): void;
}

export async function transact(
  call: StepCall,
  work: Work,
  execution: Execution,
  around: Surroundings,
  host: TransactionHost,
): Promise<Transacted> {
  const losses = new Losses(execution, around);
  for (;;) {
    const done = await transactOnce(call, work, execution, around, host);
    if (done.kind !== "performed") return done;
    if (done.seq !== null) host.giveUp(done.seq);
    const { performed, undone } = done;
    if (undone === null || performed.isHopeless) return done;
    const { mayBeItsFault } = undone;
    const isOver = (): boolean => host.isDead();
    if (!(await losses.mayRepeat(performed.entry.error, { isOver, mayBeItsFault }))) return done;
  }
}

async function transactOnce(
  call: StepCall,
  work: Work,
  execution: Execution,
  around: Surroundings,
  host: TransactionHost,
): Promise<Transacted> {
  const begunMs = performance.now();
  let opened: StoreTransaction | undefined;
  try {
    opened = await around.patiently(execution, () => around.store.begin());
  } catch (error) {
    return { kind: "performed", performed: failed(call, work, error, begunMs), seq: null, undone: null };
  }
  if (opened === undefined) return { kind: "lost" };
  const transaction = opened;
  const performed = await perform(call, work, execution, around, transaction.tx);
  if (performed.entry.error !== null || host.isDead()) {
    await opened.rollback();
    return {
      kind: "performed",
      performed,
      seq: null,
      undone: opened.isLost() ? { mayBeItsFault: true } : null,
    };
  }
  const entry = host.entryOf(performed.entry);
  const { seq } = entry;
  try {
    const verdict = await commitTransaction(
      opened,
      () => host.isDead(),
      () => transaction.record(entry),
    );
    if (verdict.kind === "failed") throw refusal(verdict);
    return { kind: "written", seq, verdict, value: performed.value };
  } catch (error) {
    if (!(error instanceof CommitUnknown)) {
      const undone = error instanceof Undone ? error : null;
      return {
        kind: "performed",
        performed: failed(call, work, undone?.cause ?? error, begunMs),
        seq,
        undone,
      };
    }
    around.logger.warn(
      { err: error, step: call.name },
      "pawl: commit outcome unknown: the connection was lost during COMMIT",
    );
    return { kind: "unknown", seq };
  }
}

/** The database refused to record something, or the server a child that the token of this worker may not start. */
export function refusal({ code, message }: { code: string; message: string }): PawlError {
  if (code === "Forbidden") return new Forbidden(message);
  return new InvalidOutcome(`the database refused it (${code}): ${message}`);
}
