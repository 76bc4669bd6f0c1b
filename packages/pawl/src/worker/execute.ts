/**
 * Executes one claimed run, by its kind. Never rejects. Called for every execution of a worker.
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
 * Executes a run until its claim ends, or its execution is aborted. "refused": the database refuses
 * every outcome of the run. The worker must release its claim, and the run will be tried again.
 * `claimers` knows the batches that a run of a batch job joins.
 */
export async function execute(
  execution: Execution,
  claimers: { batchesOf(queue: string, definition: BatchDefinition): BatchJoin },
): Promise<"ended" | "refused"> {
  const { runId, definition, claim, progress, control, services } = execution;
  try {
    if (control.isAborted) return "ended";
    const { attempt } = progress;
    const limit = crashLimit(definition, { attempt, crashes: claim.run.crashes });
    if (limit !== null) await commitFailure(execution, decideFailure(progress.step, limit));
    else if (isBatchJob(definition))
      await executeInBatch(execution, definition, claimers.batchesOf(execution.queue, definition));
    else if (definition.kind === "job") await executeJob(execution, definition);
    else if (definition.kind === "workflow") await executeWorkflow(execution, definition);
    else await executeMachine(execution, definition);
    return "ended";
  } catch (error) {
    if (error instanceof Interrupted) {
      control.abort(error);
      return "ended";
    }
    services.logger.error({ err: error, runId }, "pawl: the outcome of a run could not be committed");
    return "refused";
  }
}
