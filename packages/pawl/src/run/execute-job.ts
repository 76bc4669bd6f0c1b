/**
 * Executes a claimed job: its input → user code with `ctx` → result or error → decide → commit. Whatever user code does ends as an
 * outcome; only a lost claim ends an execution without one. Called by `worker/execute.ts`.
 */

import type { JobDefinition } from "../define/definition.js";
import { isThenable, withinTime } from "../timing/deadline.js";
import { commit, commitFailure } from "./commit.js";
import { attemptOf, type Execution } from "./execution.js";
import { decideReturned, readInput } from "./input-and-result.js";
import { LetGo } from "./let-go.js";
import { jobContext } from "./step-context.js";
import { abandonTransaction, Losses, takeOutcome, Undone } from "./transaction.js";
import { decideFailure, decideJobError, type Decision } from "./transition.js";
import type { Surroundings } from "./worker-services.js";

export async function executeJob(
  execution: Execution,
  definition: JobDefinition,
  around: Surroundings,
): Promise<void> {
  let input: unknown;
  try {
    input = readInput(execution, definition);
    if (input instanceof Promise) input = await input;
  } catch (error) {
    await commitFailure(execution, decideFailure(null, error), around);
    return;
  }
  let losses: Losses | undefined;
  for (;;) {
    const refused = await attemptJob(execution, definition, input, around);
    if (refused === null) return;
    const { mayBeItsFault } = refused;
    const isOver = (): boolean => execution.aborted;
    losses ??= new Losses(execution, around);
    if (await losses.mayRepeat(refused, { isOver, mayBeItsFault })) continue;
    if (execution.aborted || execution.isStopping) throw new LetGo();
    await commitFailure(execution, decideJobError(definition, execution.attempt, refused.cause), around);
    return;
  }
}

/** Runs a job and commits what comes of it; answers that its transaction was undone, if it was. */
async function attemptJob(
  execution: Execution,
  definition: JobDefinition,
  input: unknown,
  around: Surroundings,
): Promise<Undone | null> {
  let result: unknown;
  try {
    const given = jobContext(execution, around);
    around.observer.stepBegins(execution, execution, attemptOf(execution));
    const { stepSpan } = execution;
    const returned =
      stepSpan === null ? definition.run(given, input) : stepSpan.call(() => definition.run(given, input));
    result = isThenable(returned)
      ? await withinTime(returned, around.maxStepMs, (late) => execution.interrupt(late))
      : returned;
    result = takeOutcome(execution, result);
  } catch (error) {
    await abandonTransaction(execution);
    if (execution.aborted || execution.isStopping) throw new LetGo();
    await commitFailure(execution, decideJobError(definition, execution.attempt, error), around);
    return null;
  }
  // The work is done: trying again would repeat its effects and not mend a result that cannot be stored.
  let decision: Decision;
  try {
    const decided = decideReturned(result, definition, around);
    decision = decided instanceof Promise ? await decided : decided;
  } catch (error) {
    await abandonTransaction(execution);
    decision = decideFailure(null, error);
  }
  const isTransaction = execution.opened !== null;
  const refused = await commit(execution, decision, around);
  if (refused === null || refused instanceof Undone) return refused;
  // What was rolled back may be tried again.
  const failure = isTransaction
    ? decideJobError(definition, execution.attempt, refused)
    : decideFailure(null, refused);
  await commitFailure(execution, failure, around);
  return null;
}
