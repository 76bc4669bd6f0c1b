/**
 * Executes one claimed run, by its kind. Called for every execution of a worker.
 */

import { commitFailure } from "../run/commit.js";
import { Interrupted } from "../run/control.js";
import { type BatchDefinition, type BatchJoin, executeInBatch, isBatchJob } from "../run/execute-batch.js";
import { executeJob } from "../run/execute-job.js";
import { executeMachine } from "../run/execute-machine.js";
import type { Execution } from "../run/execution.js";
import { crashLimit, decideFailure } from "../run/transition.js";
import { executeWorkflow } from "../workflow/execute.js";

/**
 * Executes a run until its claim ends, or its execution is aborted. Rejects if no outcome of the run
 * could be committed (`endOf`). `claimers` knows the batches that a run of a batch job joins.
 */
export function execute(
  execution: Execution,
  claimers: { batchesOf(queue: string, definition: BatchDefinition): BatchJoin },
): Promise<void> {
  const { definition, claim, progress } = execution;
  const { attempt } = progress;
  const limit = crashLimit(definition, { attempt, crashes: claim.run.crashes });
  if (limit !== null) return commitFailure(execution, decideFailure(progress.step, limit));
  if (isBatchJob(definition)) {
    return executeInBatch(execution, definition, claimers.batchesOf(execution.queue, definition));
  }
  if (definition.kind === "job") return executeJob(execution, definition);
  if (definition.kind === "workflow") return executeWorkflow(execution, definition);
  return executeMachine(execution, definition);
}

/**
 * How an execution ended that was rejected with this error. "refused": the database refuses every
 * outcome of the run. The worker must release its claim, and the run will be tried again.
 */
export function endOf({ runId, control, services }: Execution, error: unknown): "ended" | "refused" {
  if (error instanceof Interrupted) {
    control.abort(error);
    return "ended";
  }
  services.logger.error({ err: error, runId }, "pawl: the outcome of a run could not be committed");
  return "refused";
}
