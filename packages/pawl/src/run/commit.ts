/**
 * Commits a decision about a run through the batcher of commits, or in the transaction of its step,
 * and applies its effects: events, hints, the progress of the run, the next run of its partition
 * key. Called by the functions that execute jobs, machines and workflows.
 */

import { failedOutcome, failedWriteOf } from "../store/failed-write.js";
import type { Claim, Claimable, Commit, StoreTransaction } from "../store/store.js";
import { newClaimId } from "../values/claim-id.js";
import { PawlError } from "../values/errors.js";
import { readErrorRecord, withoutStacksText } from "../values/error-record.js";
import { fromJson } from "../values/json.js";
import { type Failure, logFailure } from "../observe/failure-log.js";
import type { FailedAt } from "../observe/observer.js";
import { effectsOf, sendHints } from "./effects.js";
import type { Execution, RunClaim } from "./execution.js";
import { CommitUnknown, commitTransaction, RolledBack } from "./transaction.js";
import type { Decision } from "./transition.js";
import { type CommitVerdict, sliceMs, sliceSteps, type WorkerServices } from "./worker-services.js";

type Committed = Extract<CommitVerdict, { kind: "committed" | "already" }>;

/**
 * Commits a decision. Null: it is settled (committed, or dropped with the claim). `RolledBack`: its
 * transaction was rolled back, and not because of the step. Else the error why the database refused
 * it.
 */
export async function commit(
  execution: Execution,
  decision: Decision,
): Promise<PawlError | RolledBack | null> {
  const { runId, claimId, queue, claimer, claim, progress, control, services } = execution;
  if (control.isAborted) {
    await execution.transaction.abandon();
    return null;
  }
  const { parentId, partitionKey } = claim.run;
  const { turn, inbox } = progress;
  const transition = toRecord(decision, services);
  services.observer.stepReturned(execution.observed);
  const next = partitionKey === null || transition.kind === "keep" ? null : offerNext(execution);
  const item: Commit = {
    runId,
    queue,
    claimId,
    turn,
    inboxSeq: inbox.seq,
    parentId,
    partitionKey,
    next,
    transition,
  };
  const opened = execution.transaction.detach();
  // The outcome ends the claim: the run for its slot is claimed meanwhile.
  const isEnd = opened === null && next === null && transition.kind !== "keep";
  if (isEnd) claimer.endBegins();
  let verdict: CommitVerdict | PawlError | RolledBack | null;
  try {
    verdict = await (opened === null
      ? services.commits.add(item)
      : writeInTransaction(execution, opened, item));
  } finally {
    if (isEnd) claimer.endIsOver();
  }
  if (next !== null) services.worker.claiming.delete(next.claimId);
  if (verdict instanceof RolledBack) {
    services.observer.stepDropped(execution.observed);
    return verdict;
  }
  if (verdict instanceof PawlError) return verdict;
  if (verdict === null) {
    control.abort(new Error("commit outcome unknown: the claim on this run may have ended"));
    return null;
  }
  if (verdict.kind === "failed") return failedOutcome(verdict);
  if (verdict.kind === "stale") loseClaim(execution);
  else apply(execution, item, verdict, decision);
  return null;
}

/** The transition as it is stored: without stacks, if the worker was told to record none. */
function toRecord({ transition }: Decision, { recordStacks }: WorkerServices): Decision["transition"] {
  if (recordStacks || !("error" in transition) || transition.error === null) return transition;
  return { ...transition, error: withoutStacksText(transition.error) };
}

/** Commits the failure of a run; throws if the database refuses even that. */
export async function commitFailure(execution: Execution, decision: Decision): Promise<void> {
  const refused = await commit(execution, decision);
  if (refused !== null) throw refused;
}

/** A write of this execution was refused: another worker has the run, or it was cancelled. */
export function loseClaim({ runId, definition, progress, control, observed, services }: Execution): void {
  if (!control.isAborted) {
    const { step, attempt } = progress;
    services.observer.stale(observed);
    services.logger.warn(
      { runId, name: definition.name, step, attempt },
      "pawl: the claim on a run was lost, so the outcome of its step was not recorded",
    );
  }
  control.abort(new Error("the claim on this run was lost"));
}

/**
 * Commits an outcome in the transaction of its step. Null: the outcome of the commit is unknown; an
 * error of Pawl: what the step did wrong.
 */
async function writeInTransaction(
  { control, services }: Execution,
  opened: StoreTransaction,
  item: Commit,
): Promise<CommitVerdict | PawlError | RolledBack | null> {
  let freed: readonly Claimable[] = [];
  try {
    const verdict = await commitTransaction(
      opened,
      () => control.isAborted,
      async () => {
        const applied = await opened.apply(item);
        freed = applied.claimable;
        return applied.verdict;
      },
    );
    services.hub.claimable(freed);
    return verdict;
  } catch (error) {
    if (error instanceof CommitUnknown) {
      services.logger.warn(
        { err: error, runId: item.runId },
        "pawl: commit outcome unknown: the connection was lost during COMMIT",
      );
      return null;
    }
    if (error instanceof RolledBack || error instanceof PawlError) return error;
    return failedOutcome(failedWriteOf(error));
  }
}

/** The transition is committed: events, hints and logs, and the progress of the run. */
function apply(execution: Execution, item: Commit, verdict: Committed, decision: Decision): void {
  const { runId, definition, progress, observed, services } = execution;
  const { observer, logger } = services;
  const { dueMs = null, thrown = null } = decision;
  const effects = effectsOf(item, dueMs);
  if (verdict.kind === "committed" && verdict.uniqueLost) {
    logger.warn({ runId }, "pawl: unique_lost: the unique key was taken meanwhile");
    observer.uniqueLost(runId, definition.name, definition.version);
  }
  const end = { delayMs: effects.dueMs ?? 0, error: thrown };
  observer.stepEnded(observed, observed, execution.attempt, effects.step, end);
  if (effects.started.length > 0) observer.started(effects.started, runId);
  const failure = failureOf(execution, decision);
  if (effects.ended !== null) {
    observer.ended(observed, failure === null ? null : failedAt(failure, thrown));
  }
  sendHints(services.hub, item, effects);
  if (failure !== null) logFailure(logger, effects.ended === null ? "attempt" : "run", failure);
  execution.told(verdict.paused);
  progress.advance(item.transition, verdict, successorOf(execution, item, verdict));
}

function failedAt({ step, attempt, error }: Failure, thrown: unknown): FailedAt {
  return { step, attempt, code: error.code ?? error.name, error: thrown };
}

/** The next run of the partition key, if the commit has claimed it. */
function successorOf({ claim }: Execution, { next }: Commit, verdict: Committed): RunClaim | null {
  if (verdict.kind !== "committed" || verdict.handed === null || next === null) return null;
  const { sinceMs, count } = claim.chain;
  return {
    run: verdict.handed,
    claimId: next.claimId,
    claimedAtMs: performance.now(),
    chain: { sinceMs, count: count + 1 },
  };
}

/**
 * A claim for the next run of the partition key, so that it need not go through the queue. Offered
 * only while no other run waits for the slot, as far as is known. While too few slots are free to
 * claim more runs, a chain of such runs lasts one slice.
 */
function offerNext({ claimer, claim, services }: Execution): Claim | null {
  const { worker } = services;
  if (worker.isStopping() || claimer.hasBacklog) return null;
  const { sinceMs, count } = claim.chain;
  const isUsedUp = count >= sliceSteps || performance.now() - sinceMs >= sliceMs;
  if (isUsedUp && !claimer.isClaiming) return null;
  const workerId = worker.workerId();
  if (workerId === null) return null;
  const claimId = newClaimId();
  worker.claiming.add(claimId);
  return { workerId, claimId };
}

/** Where an attempt or the run failed, if it did. The error has its stack, recorded or not. */
function failureOf(execution: Execution, { transition }: Decision): Failure | null {
  if (!("error" in transition) || transition.error === null) return null;
  const { runId, definition, progress } = execution;
  const error = readErrorRecord(fromJson(transition.error));
  const step = definition.kind === "workflow" ? (error.step ?? null) : execution.attempt.name;
  return { runId, definition, step, attempt: progress.attempt, error };
}
