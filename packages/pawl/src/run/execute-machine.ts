/**
 * Executes a claimed machine: load → user code with `ctx` → outcome or error → decide → commit →
 * next step. After `next` the worker keeps the claim and executes the next step at once, unless the
 * run has used up its slice while others wait. User code always ends in an outcome of its step;
 * only a lost claim ends an execution without one. Called by `worker/execute.ts`.
 */

import type { MachineDefinition } from "../define/definition.js";
import { checkOutcome, type Outcome, type Spawn } from "../define/outcome.js";
import { parse } from "../define/schema.js";
import type { NewRun } from "../store/store.js";
import { isA } from "../values/error-record.js";
import { InvalidState, type PawlError, PayloadTooLarge } from "../values/errors.js";
import { type Encoded, fromJson } from "../values/json.js";
import { commit, commitFailure } from "./commit.js";
import { Interrupted } from "./control.js";
import type { Execution } from "./execution.js";
import { newRun } from "./new-run.js";
import { callCode, stepContext } from "./step-context.js";
import { RolledBack, RollbackRetries } from "./transaction.js";
import {
  decide,
  decideFailure,
  decideHandled,
  decideUnhandled,
  type Decision,
  type Situation,
} from "./transition.js";
import { sliceMs, sliceSteps } from "./worker-services.js";

const maxSpawnLength = 16 * 1024 * 1024;

/** One step of one machine: where it is, and the state that it begins with. */
interface MachineStep {
  readonly execution: Execution;
  readonly definition: MachineDefinition;
  readonly stored: Encoded;
  readonly at: Situation;
  /** The first step of a new run: its state is the input. */
  readonly isNew: boolean;
}

export async function executeMachine(execution: Execution, definition: MachineDefinition): Promise<void> {
  const { claim, progress, control, services } = execution;
  const { state, input } = claim.run;
  const text = state ?? input ?? "null";
  let stored: Encoded = { text, value: fromJson(text) };
  const begunMs = performance.now();

  for (let count = 1; ; count++) {
    if (progress.inbox.isIncomplete) {
      await execution.repeatWhileClaimed(() => progress.inbox.load(services.store));
    }
    if (control.isAborted) return;
    const at: Situation = {
      step: progress.beginAt(definition.initial),
      storedState: count === 1 ? null : stored.text,
      awaited: progress.inbox.awaitedSeqs,
      maxBytes: services.limits.maxPayloadBytes,
      mayKeep: () => mayKeepClaim(execution, count, begunMs),
    };
    const isNew = state === null && count === 1;
    const next = await executeStep({ execution, definition, stored, at, isNew });
    if (control.isAborted || next === null || progress.isSettled) return;
    stored = next;
  }
}

/**
 * Whether the claim may be kept for another step. Runs that wait for its key are not in the queue's
 * backlog.
 */
function mayKeepClaim(
  { claimer, claim, control, services }: Execution,
  count: number,
  begunMs: number,
): boolean {
  const { worker } = services;
  if (control.isInterrupted || worker.isStopping()) return false;
  const isUsedUp = count >= sliceSteps || performance.now() - begunMs >= sliceMs;
  if (!isUsedUp) return true;
  return claim.run.partitionKey === null && !claimer.hasBacklog;
}

/** Executes a step and commits its outcome. Answers the new state if the claim is kept. */
async function executeStep(step: MachineStep): Promise<Encoded | null> {
  const { execution, at } = step;
  const outcome = await settle(execution, () => takeStep(step));
  if (outcome.refused === null) return outcome.decision.state;
  const handled = await settle(execution, () => decideByHandle(step, outcome.refused));
  if (handled.refused === null) return handled.decision.state;
  await commitFailure(execution, decideFailure(at.step, handled.refused));
  return null;
}

interface Settled {
  readonly decision: Decision;
  /** Why the database refused the decision; null: it is committed, or dropped with the claim. */
  readonly refused: unknown;
}

/**
 * Decides and commits; again while the transaction is rolled back for a reason that is not the
 * step's.
 */
async function settle(execution: Execution, decideStep: () => Promise<Decision>): Promise<Settled> {
  const { control } = execution;
  const isOver = (): boolean => control.isAborted;
  let retries: RollbackRetries | undefined;
  for (;;) {
    const decision = await decideStep();
    const refused: PawlError | RolledBack | null = await commit(execution, decision);
    if (!(refused instanceof RolledBack)) return { decision, refused };
    const { mayBeItsFault } = refused;
    retries ??= new RollbackRetries(execution);
    if (await retries.mayRepeat(refused, { isOver, mayBeItsFault })) continue;
    if (control.isEnding) throw new Interrupted();
    return { decision, refused: refused.cause };
  }
}

/**
 * One step, from the stored state to a decision. A new run whose input is refused fails without any
 * step.
 */
async function takeStep(step: MachineStep): Promise<Decision> {
  const { execution, definition, stored, at, isNew } = step;
  const { transaction, observed, services } = execution;
  let state: unknown = stored.value;
  try {
    if (definition.state !== undefined) {
      const what = isNew ? "input" : "state";
      const parsed = parse(definition.state, state, isNew ? "InvalidInput" : "InvalidState", what);
      state = parsed instanceof Promise ? await parsed : parsed;
    }
  } catch (error) {
    return isNew ? decideFailure(null, error) : decideByHandle(step, error);
  }
  try {
    const code = definition.steps.get(at.step);
    if (code === undefined) throw unknownStep(definition, at.step);
    const given = stepContext(execution, at.step, state);
    services.observer.stepBegins(observed, observed, execution.attempt);
    const called = callCode(execution, () => code(given));
    const outcome = transaction.outcomeOf(called instanceof Promise ? await called : called);
    const checked = checkOutcome(outcome, definition.steps, `step "${at.step}"`);
    const decision = decideOutcome(at, checked, execution);
    return decision instanceof Promise ? await decision : decision;
  } catch (error) {
    await transaction.abandon();
    return decideByHandle(step, error);
  }
}

/**
 * The decision of the machine's `handle` about an error. Without `handle`, or if it throws too, the
 * run fails. It sees the stored state, whatever the step did to its own copy. If the state itself
 * does not parse, it sees the raw one.
 */
async function decideByHandle(step: MachineStep, error: unknown): Promise<Decision> {
  const { execution, definition, stored, at } = step;
  const { control, transaction } = execution;
  if (control.isEnding) throw new Interrupted();
  const { handle } = definition;
  if (handle === undefined) return decideFailure(at.step, error);
  try {
    let state: unknown = fromJson(stored.text);
    if (definition.state !== undefined && !isA(error, InvalidState)) {
      state = await parse(definition.state, state, "InvalidState", "state");
    }
    const given = stepContext(execution, at.step, state);
    const outcome = transaction.outcomeOf(await callCode(execution, () => handle(error, given)));
    const checked = checkOutcome(outcome, definition.steps, "handle");
    return decideHandled(await decideOutcome(at, checked, execution), at.step, error);
  } catch (handleError) {
    await transaction.abandon();
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
