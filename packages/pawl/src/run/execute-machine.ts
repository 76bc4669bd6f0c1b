/**
 * Executes a claimed machine: load → user code with `ctx` → outcome or error → decide → commit → next. After `next` the claim is
 * kept and the next step runs at once, unless the slice of the run is used up while others wait. Whatever user code does ends
 * as an outcome of its step; only a lost claim ends an execution without one. Called by `worker/execute.ts`.
 */

import type { MachineDefinition } from "../define/definition.js";
import { checkOutcome, type Outcome, type Spawn } from "../define/outcome.js";
import { parse } from "../define/schema.js";
import type { NewRun } from "../store/store.js";
import { isThenable, withinTime } from "../timing/deadline.js";
import { isA } from "../values/error-record.js";
import { InvalidState, type PawlError, PayloadTooLarge } from "../values/errors.js";
import { type Encoded, fromJson } from "../values/json.js";
import { commit, commitFailure } from "./commit.js";
import { attemptOf, type Execution } from "./execution.js";
import { LetGo } from "./let-go.js";
import { newRun } from "./new-run.js";
import { stepContext } from "./step-context.js";
import { abandonTransaction, Losses, takeOutcome, Undone } from "./transaction.js";
import { decide, decideFailure, decideUnhandled, type Decision, type Situation } from "./transition.js";
import { sliceMs, sliceSteps, type Surroundings } from "./worker-services.js";

const maxSpawnLength = 16 * 1024 * 1024;

export async function executeMachine(
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
        return !(
          isUsedUp &&
          (execution.partitionKey !== null || around.claimer(execution.queue)?.hasBacklog)
        );
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
