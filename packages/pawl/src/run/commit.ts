/**
 * Commits what was decided about a run, through the flusher, and tells the process what follows from it: the run's next
 * step, when it is due, who waits for its end, which run comes next for its partition key. Called by the executor.
 */

import { fromJson } from "../values/json.js";
import { Forbidden, InvalidOutcome, InvalidState, KeyConflict, PawlError } from "../values/errors.js";
import type { Claim, Claimable, Commit, StoreTransaction, Verdict } from "../store/store.js";
import { newClaimId } from "../values/claim-id.js";
import { type Effects, effectsOf, sendHints } from "./effects.js";
import { attemptOf, type Execution } from "./execution.js";
import { sliceMs, sliceSteps, type Surroundings } from "./worker-services.js";
import { abandonTransaction, CommitUnknown, commitTransaction, Undone } from "./transaction.js";
import type { Decision } from "./transition.js";

/**
 * Commits a decision. Null: it is settled (committed, or dropped with the claim); `Undone`: its
 * transaction is rolled back, by no fault of the step; else why the database refused it.
 */
export async function commit(
  execution: Execution,
  { transition, dueMs = null }: Decision,
  around: Surroundings,
): Promise<PawlError | Undone | null> {
  if (execution.aborted) {
    await abandonTransaction(execution);
    return null;
  }
  const { runId, queue, claimId, turn, parentId, partitionKey, incoming } = execution;
  const { inboxSeq } = incoming;
  around.observer.stepReturned(execution);
  const next = partitionKey === null || transition.kind === "keep" ? null : offerNext(execution, around);
  const item = { runId, queue, claimId, turn, inboxSeq, parentId, partitionKey, next, transition };
  const isEnd = transition.kind !== "keep" && next === null;
  const verdict =
    execution.opened === null
      ? await write(item, isEnd ? around.feeder(queue) : undefined, around)
      : await commitOpened(execution, execution.opened, item, around);
  if (next !== null) around.claiming.delete(next.claimId);
  if (verdict instanceof Undone) {
    around.observer.stepDropped(execution);
    return verdict;
  }
  if (verdict instanceof PawlError) return verdict;
  if (verdict === null) {
    execution.abort(new Error("nobody knows whether the claim on this run has ended"));
    return null;
  }
  switch (verdict.kind) {
    case "committed":
      if (verdict.uniqueLost) {
        const { name, version } = execution.definition;
        around.logger.warn({ runId }, "pawl: unique_lost: the unique key was taken meanwhile");
        around.observer.uniqueLost(runId, name, version);
      }
      if (verdict.handed !== null && next !== null) {
        const { sinceMs, count } = execution.chain;
        execution.successor = {
          run: verdict.handed,
          claimId: next.claimId,
          chain: { sinceMs, count: count + 1 },
        };
      }
      break;
    case "already":
      break;
    case "stale":
      loseClaim(execution, around);
      return null;
    case "failed":
      // Keys of a child that belong to two runs; a rate limit that nobody has set.
      if (verdict.code === "PW409") return new KeyConflict(verdict.message);
      if (verdict.code === "PW422") return new InvalidOutcome(verdict.message);
      // A child that the token of this worker may not start.
      if (verdict.code === "Forbidden") return new Forbidden(verdict.message);
      return new InvalidState(`the database refused the outcome (${verdict.code}): ${verdict.message}`);
    case "busy":
      throw new Error("the flusher answered busy");
  }
  execution.turn++;
  execution.isSettled = transition.kind !== "keep";
  const effects = effectsOf(item, dueMs);
  observe(execution, effects, around);
  sendHints(around.hub, item, effects);
  if (transition.kind === "keep") {
    execution.step = transition.step;
    execution.attempt = 0;
    incoming.advance(transition.consumed, verdict.inboxSeq);
  }
  if (effects.error !== null) {
    const failed = effects.ended === null ? "an attempt failed, another will follow" : "a run failed";
    around.logger.warn(describe(execution, effects.error), `pawl: ${failed}`);
  }
  return null;
}

/** Writes an outcome, and lets the slot's next run be claimed meanwhile, if this is the end of the claim. */
async function write(
  item: Commit,
  feeder: ReturnType<Surroundings["feeder"]>,
  { flusher }: Surroundings,
): Promise<Verdict> {
  feeder?.endBegins();
  try {
    return await flusher.write(item);
  } finally {
    feeder?.endIsOver();
  }
}

/** Emits the events of the present step, and of the run. */
function observe(
  execution: Execution,
  { step, dueMs, started, ended }: Effects,
  { observer }: Surroundings,
): void {
  observer.stepEnded(execution, execution, attemptOf(execution), step, dueMs ?? 0);
  if (started.length > 0) observer.started(started, execution.runId);
  if (ended !== null) observer.ended(execution, ended.error);
}

/** What this execution wanted to write was refused: the run is not its own any more. */
export function loseClaim(execution: Execution, { logger, observer }: Surroundings): void {
  const { runId, definition, step, attempt, aborted } = execution;
  if (!aborted) {
    observer.stale(execution);
    logger.warn(
      { runId, name: definition.name, step, attempt },
      "pawl: what a step did was not recorded, because the claim on its run was lost",
    );
  }
  execution.abort(new Error("the claim on this run was lost"));
}

/**
 * Commits an outcome in the transaction of its step. Null: nobody knows whether it is; an error of
 * Pawl's: what the step did wrong.
 */
async function commitOpened(
  execution: Execution,
  opened: StoreTransaction,
  item: Commit,
  around: Surroundings,
): Promise<Verdict | PawlError | Undone | null> {
  execution.opened = null;
  let freed: readonly Claimable[] = [];
  try {
    const done = await commitTransaction(
      opened,
      () => execution.aborted,
      async () => {
        const { verdict, claimable } = await opened.apply(item);
        freed = claimable;
        return verdict;
      },
    );
    around.hub.claimable(freed);
    return done;
  } catch (error) {
    if (error instanceof CommitUnknown) {
      around.logger.warn(
        { err: error, runId: item.runId },
        "pawl: commit outcome unknown: the connection was lost during COMMIT",
      );
      return null;
    }
    if (error instanceof Undone || error instanceof PawlError) return error;
    const { code = "", message } = error as { code?: string; message: string };
    return { kind: "failed", code, message };
  }
}

/** Commits the failure of a run; throws if the database refuses even that. */
export async function commitFailure(
  execution: Execution,
  decision: Decision,
  around: Surroundings,
): Promise<void> {
  const refused = await commit(execution, decision, around);
  if (refused !== null) throw refused;
}

/**
 * A claim for the next run in line for the key, so that it need not go through the queue: only while nothing else waits for
 * the slot, as far as is known; where too few slots are free to look for more, it is for one slice.
 */
function offerNext({ queue, chain }: Execution, around: Surroundings): Claim | null {
  const feeder = around.feeder(queue);
  if (around.isStopping() || feeder?.hasBacklog) return null;
  const isUsedUp = chain.count >= sliceSteps || performance.now() - chain.sinceMs >= sliceMs;
  if (isUsedUp && !feeder?.isLooking) return null;
  const workerId = around.workerId();
  if (workerId === null) return null;
  const claimId = newClaimId();
  around.claiming.add(claimId);
  return { workerId, claimId };
}

/** What a log line says of an error. The messages of Pawl's own errors may quote a payload: they are left out. */
function describe({ runId, definition, attempt }: Execution, error: string): object {
  const { name, message, code, step } = fromJson(error) as Record<string, string | undefined>;
  const isOwn = name !== undefined && name === code;
  return {
    runId,
    name: definition.name,
    version: definition.version,
    attempt,
    ...(step === undefined ? {} : { step }),
    error: isOwn ? code : `${name}: ${message?.slice(0, 200)}`,
  };
}
