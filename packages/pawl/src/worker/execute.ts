/**
 * Executes one claimed run, by its kind. Never rejects: if the database refuses whatever the run comes to, its claim is
 * released. Called by the executions of a worker.
 */

import { commitFailure } from "../run/commit.js";
import { executeJob } from "../run/execute-job.js";
import { executeMachine } from "../run/execute-machine.js";
import type { Execution } from "../run/execution.js";
import { LetGo } from "../run/let-go.js";
import { crashLimit, decideFailure } from "../run/transition.js";
import type { Surroundings } from "../run/worker-services.js";
import { executeWorkflow } from "../workflow/execute.js";

/** Executes a run until its claim ends, or is to be let go (then the execution is aborted). */
export async function execute(execution: Execution, around: Surroundings): Promise<void> {
  try {
    const { definition } = execution;
    if (execution.aborted) return;
    const limit = crashLimit(definition, execution);
    if (limit !== null) await commitFailure(execution, decideFailure(execution.step, limit), around);
    else if (definition.kind === "job") await executeJob(execution, definition, around);
    else if (definition.kind === "workflow") await executeWorkflow(execution, definition, around);
    else await executeMachine(execution, definition, around);
  } catch (error) {
    if (error instanceof LetGo) {
      execution.abort(error);
      return;
    }
    // The database refuses whatever the run comes to: its claim is released, and it is tried again.
    execution.isRefused = true;
    around.logger.error(
      { err: error, runId: execution.runId },
      "pawl: the outcome of a run could not be committed",
    );
  }
}
