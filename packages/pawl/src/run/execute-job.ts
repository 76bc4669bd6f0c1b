/**
 * Executes a claimed job: input → user code with `ctx` → result or error → decide → commit. User
 * code always ends in an outcome; only a lost claim ends an execution without one. Called by
 * `worker/execute.ts`.
 */

import type { JobDefinition } from "../define/definition.js";
import { commit, commitFailure } from "./commit.js";
import { Interrupted } from "./control.js";
import type { Execution } from "./execution.js";
import { decideReturned, readInput } from "./input-and-result.js";
import { callCode, jobContext } from "./step-context.js";
import { RolledBack, RollbackRetries } from "./transaction.js";
import { decideFailure, decideJobError, type Decision } from "./transition.js";

export async function executeJob(execution: Execution, definition: JobDefinition): Promise<void> {
  const { control, progress, transaction, observed, services } = execution;
  let input: unknown;
  try {
    input = readInput(execution, definition);
    if (input instanceof Promise) input = await input;
  } catch (error) {
    await commitFailure(execution, decideFailure(null, error));
    return;
  }
  let retries: RollbackRetries | undefined;
  for (;;) {
    let result: unknown;
    try {
      const given = jobContext(execution);
      services.observer.stepBegins(observed, observed, execution.attempt);
      const called = callCode(execution, () => definition.run(given, input));
      result = transaction.outcomeOf(called instanceof Promise ? await called : called);
    } catch (error) {
      await transaction.abandon();
      if (control.isEnding) throw new Interrupted();
      await commitFailure(execution, decideJobError(definition, progress.attempt, error));
      return;
    }
    const rolledBack = await commitReturned(execution, definition, result);
    if (rolledBack === null) return;
    const { mayBeItsFault } = rolledBack;
    const isOver = (): boolean => control.isAborted;
    retries ??= new RollbackRetries(execution);
    if (await retries.mayRepeat(rolledBack, { isOver, mayBeItsFault })) continue;
    if (control.isEnding) throw new Interrupted();
    await commitFailure(execution, decideJobError(definition, progress.attempt, rolledBack.cause));
    return;
  }
}

/** Commits the result of a job. Answers `RolledBack` if its transaction was. */
export async function commitReturned(
  execution: Execution,
  definition: JobDefinition,
  result: unknown,
): Promise<RolledBack | null> {
  const { progress, transaction, services } = execution;
  // The work is done: another attempt would repeat its effects and not help a result that JSON
  // cannot hold.
  let decision: Decision;
  try {
    const decided = decideReturned(result, definition, services.limits);
    decision = decided instanceof Promise ? await decided : decided;
  } catch (error) {
    await transaction.abandon();
    decision = decideFailure(null, error);
  }
  const isInTransaction = transaction.isOpen;
  const refused = await commit(execution, decision);
  if (refused === null || refused instanceof RolledBack) return refused;
  // A rolled back transaction may be tried again.
  const failure = isInTransaction
    ? decideJobError(definition, progress.attempt, refused)
    : decideFailure(null, refused);
  await commitFailure(execution, failure);
  return null;
}
