/**
 * Executes one claimed run: load → user code with `ctx` → outcome or error → decide → commit → next. After `next` the
 * claim is kept and the next step runs at once, unless the slice of the run is used up while others wait. Whatever
 * user code does ends as an outcome of its step; only a lost claim ends an execution without one. `execute` never
 * rejects. Called by the worker with what the feeder claimed or a direct start handed over.
 */

import type { JobDefinition, MachineDefinition } from "../define/definition.js";
import { isA } from "../define/error-record.js";
import { InvalidState, type PawlError, PayloadTooLarge } from "../define/errors.js";
import { type Encoded, fromJson } from "../define/json.js";
import { checkOutcome, type Outcome, type Spawn } from "../define/outcome.js";
import { parse } from "../define/schema.js";
import type { NewRun } from "../store/store.js";
import { commit, commitFailure } from "./commit.js";
import { attemptOf, type Execution } from "./execution.js";
import { newRun } from "./new-run.js";
import { jobContext, stepContext } from "./step-context.js";
import { sliceMs, sliceSteps, type Surroundings } from "./surroundings.js";
import { abandonTransaction, Losses, takeOutcome, Undone } from "./transaction.js";
import {
  crashLimit,
  decide,
  decideFailure,
  decideJobError,
  decideUnhandled,
  type Decision,
  type Situation,
} from "./transition.js";
import { decideReturned, readInput } from "./values.js";
import { isThenable, withinTime } from "./within-time.js";
import { executeWorkflow } from "./workflow.js";

const maxSpawnLength = 16 * 1024 * 1024;

/**
 * An error after the run was cancelled, the claim lost, or the worker has begun to stop says nothing about the run: nobody
 * handles it, and the claim is let go, its attempt unchanged.
 */
class LetGo extends Error {}

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

async function executeJob(
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

async function executeMachine(
  execution: Execution,
  definition: MachineDefinition,
  around: Surroundings,
): Promise<void> {
  const isNew = execution.state === null;
  const text = execution.state ?? execution.input ?? "null";
  let stored: Encoded = { text, value: fromJson(text) };
  execution.step ??= definition.initial;
  const begunMs = performance.now();

  for (let steps = 1; ; steps++) {
    const count = steps;
    if (execution.incoming.isIncomplete) {
      await around.patiently(execution, () => execution.incoming.load(around.store));
    }
    if (execution.aborted) return;
    const at: Situation = {
      step: execution.step,
      storedState: steps === 1 ? null : stored.text,
      awaited: execution.incoming.awaitedSeqs,
      maxBytes: around.maxPayloadBytes,
      mayKeep: () => {
        if (execution.interrupted || around.isStopping()) return false;
        const isUsedUp = count >= sliceSteps || performance.now() - begunMs >= sliceMs;
        // Others that wait for its key are not in the queue's backlog.
        return !(isUsedUp && (execution.partitionKey !== null || around.feeder(execution.queue)?.hasBacklog));
      },
    };
    const isFirst = isNew && steps === 1;
    let decision = await takeStep(execution, definition, stored, at, isFirst, around);
    let refused: unknown = await commit(execution, decision, around);
    if (refused instanceof Undone) {
      const again = (): Promise<Decision> => takeStep(execution, definition, stored, at, isFirst, around);
      ({ decision, refused } = await commitAgain(execution, decision, refused, again, around));
    }
    if (refused !== null) {
      const handle = (): Promise<Decision> =>
        decideByHandle(execution, definition, stored, at, refused, around);
      decision = await handle();
      let unhandled: unknown = await commit(execution, decision, around);
      if (unhandled instanceof Undone) {
        ({ decision, refused: unhandled } = await commitAgain(
          execution,
          decision,
          unhandled,
          handle,
          around,
        ));
      }
      if (unhandled !== null) {
        await commitFailure(execution, (decision = decideFailure(at.step, unhandled)), around);
      }
    }
    if (execution.aborted || decision.state === null) return;
    stored = decision.state;
  }
}

/**
 * A decision whose transaction was undone is made and committed again, until it is settled or
 * refused by the step's own fault.
 */
async function commitAgain(
  execution: Execution,
  undone: Decision,
  by: Undone,
  decideAgain: () => Promise<Decision>,
  around: Surroundings,
): Promise<{ decision: Decision; refused: unknown }> {
  const losses = new Losses(execution, around);
  let decision = undone;
  let refused: PawlError | Undone | null = by;
  while (refused instanceof Undone) {
    const { mayBeItsFault } = refused;
    const isOver = (): boolean => execution.aborted;
    if (!(await losses.mayRepeat(refused, { isOver, mayBeItsFault }))) {
      if (execution.aborted || execution.isStopping) throw new LetGo();
      return { decision, refused: refused.cause };
    }
    decision = await decideAgain();
    refused = await commit(execution, decision, around);
  }
  return { decision, refused };
}

/** One step, from the stored state to a decision. A new run whose input is refused fails without any step. */
async function takeStep(
  execution: Execution,
  definition: MachineDefinition,
  stored: Encoded,
  at: Situation,
  isNew: boolean,
  around: Surroundings,
): Promise<Decision> {
  let state: unknown = stored.value;
  try {
    if (definition.state !== undefined) {
      const what = isNew ? "input" : "state";
      const parsed = parse(definition.state, state, isNew ? "InvalidInput" : "InvalidState", what);
      state = parsed instanceof Promise ? await parsed : parsed;
    }
  } catch (error) {
    return isNew
      ? decideFailure(null, error)
      : decideByHandle(execution, definition, stored, at, error, around);
  }
  try {
    const step = definition.steps.get(at.step);
    if (step === undefined) throw unknownStep(definition, at.step);
    const given = stepContext(execution, around, at.step, state);
    around.observer.stepBegins(execution, execution, attemptOf(execution));
    const { stepSpan } = execution;
    const returned = stepSpan === null ? step(given) : stepSpan.call(() => step(given));
    const outcome = takeOutcome(
      execution,
      isThenable(returned)
        ? await withinTime(returned, around.maxStepMs, (late) => execution.interrupt(late))
        : returned,
    );
    const decision = decideOutcome(
      at,
      checkOutcome(outcome, definition.steps, `step "${at.step}"`),
      execution,
    );
    return decision instanceof Promise ? await decision : decision;
  } catch (error) {
    await abandonTransaction(execution);
    return decideByHandle(execution, definition, stored, at, error, around);
  }
}

/**
 * What the machine's `handle` makes of an error; without one, or if it throws too, the run fails. It sees the state as
 * it is stored, whatever the step did to its own copy; the raw one, if that is what does not parse.
 */
async function decideByHandle(
  execution: Execution,
  definition: MachineDefinition,
  stored: Encoded,
  at: Situation,
  error: unknown,
  around: Surroundings,
): Promise<Decision> {
  if (execution.aborted || execution.isStopping) throw new LetGo();
  if (definition.handle === undefined) return decideFailure(at.step, error);
  try {
    let state: unknown = fromJson(stored.text);
    if (definition.state !== undefined && !isA(error, InvalidState)) {
      state = await parse(definition.state, state, "InvalidState", "state");
    }
    const { handle } = definition;
    const given = stepContext(execution, around, at.step, state);
    const { stepSpan } = execution;
    const returned = stepSpan === null ? handle(error, given) : stepSpan.call(() => handle(error, given));
    const outcome = takeOutcome(
      execution,
      isThenable(returned)
        ? await withinTime(returned, around.maxStepMs, (late) => execution.interrupt(late))
        : returned,
    );
    return await decideOutcome(at, checkOutcome(outcome, definition.steps, "handle"), execution);
  } catch (handleError) {
    await abandonTransaction(execution);
    return decideUnhandled(at.step, handleError, error);
  }
}

/** Decides at once, unless children must be made first: their schemas may be asynchronous. */
function decideOutcome(
  at: Situation,
  outcome: Outcome,
  { traceparent }: Execution,
): Decision | Promise<Decision> {
  if (outcome.kind !== "spawn") return decide(at, outcome);
  return newChildren(outcome, at.maxBytes, traceparent).then((children) => decide(at, outcome, children));
}

async function newChildren({ children }: Spawn, maxBytes: number, trace: string | null): Promise<NewRun[]> {
  const runs = await Promise.all(
    children.map(async ({ target, input, options }, index) => {
      const of = `children[${index}]`;
      return { ...(await newRun(target, input, options, { what: `${of}.input`, of, maxBytes })), trace };
    }),
  );
  const length = runs.reduce((sum, run) => sum + run.input.length, 0);
  if (length <= maxSpawnLength) return runs;
  throw new PayloadTooLarge(
    `the inputs of these ${runs.length} children are ${length} characters of JSON together, at most ${maxSpawnLength} are ` +
      "allowed in one spawn: spawn fewer at once, or give them less",
  );
}

function unknownStep(definition: MachineDefinition, step: string): InvalidState {
  return new InvalidState(
    `the run is at step "${step}", which ${definition.name}@${definition.version} does not have; its steps are ` +
      `${[...definition.steps.keys()].join(", ")}. A changed machine needs a new version while runs of the old one exist`,
  );
}
