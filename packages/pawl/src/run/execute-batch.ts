/**
 * Executes runs of a batch job. Each run is claimed and committed on its own, as any other job is;
 * only the call of the code is shared. `executeInBatch` reads the input of one run, joins a batch,
 * and commits the outcome of that run. `callBatch` calls the code once for all runs of a batch and
 * says which outcome each run has. Between the two, `worker/batches.ts` groups the runs.
 */

import type { BatchContext, BatchFailure, BatchItem, Batching } from "../define/batch.js";
import type { AnyDefinition, JobDefinition } from "../define/definition.js";
import { isThenable, withinTime } from "../timing/deadline.js";
import { InvalidOutcome, NotSupported } from "../values/errors.js";
import type { Logger } from "../values/logger.js";
import { commitFailure } from "./commit.js";
import { Interrupted } from "./control.js";
import { commitReturned } from "./execute-job.js";
import type { Execution } from "./execution.js";
import { readInput } from "./input-and-result.js";
import { bindLogger } from "./step-context.js";
import { decideFailure, decideJobError } from "./transition.js";

/** A batch job. */
export type BatchDefinition = JobDefinition & { readonly batch: Batching };

/** Whether its runs are executed many at once. */
export function isBatchJob(definition: AnyDefinition): definition is BatchDefinition {
  return definition.kind === "job" && Boolean(definition.batch);
}

/** A run that waits for a call, or is part of one. */
export interface BatchMember {
  readonly execution: Execution;
  readonly input: unknown;
}

/** How the call went for one run. */
export type BatchOutcome =
  | { readonly kind: "returned"; readonly result: unknown }
  | { readonly kind: "failed"; readonly error: unknown }
  /** The code returned something that is no outcome: another attempt would repeat its effects. */
  | { readonly kind: "invalid"; readonly error: unknown }
  /** There was no call, or nobody waits for its outcome. */
  | { readonly kind: "dropped" };

/** Groups runs into calls. */
export interface BatchJoin {
  join(member: BatchMember): Promise<BatchOutcome>;
}

/** Executes one run as part of a batch. */
export async function executeInBatch(
  execution: Execution,
  definition: BatchDefinition,
  batches: BatchJoin,
): Promise<void> {
  const { control, progress } = execution;
  let input: unknown;
  try {
    input = readInput(execution, definition);
    if (input instanceof Promise) input = await input;
  } catch (error) {
    await commitFailure(execution, decideFailure(null, error));
    return;
  }
  const outcome = await batches.join({ execution, input });
  if (outcome.kind === "dropped") throw new Interrupted();
  if (outcome.kind === "returned") {
    await commitReturned(execution, definition, outcome.result);
  } else if (outcome.kind === "invalid") {
    await commitFailure(execution, decideFailure(null, outcome.error));
  } else {
    if (control.isEnding) throw new Interrupted();
    await commitFailure(execution, decideJobError(definition, progress.attempt, outcome.error));
  }
}

/**
 * Calls the code of a batch job with these runs. Answers the outcome of each, in their order. Never
 * rejects.
 */
export async function callBatch(
  definition: BatchDefinition,
  members: readonly BatchMember[],
): Promise<readonly BatchOutcome[]> {
  const { services } = members[0]!.execution;
  for (const { execution } of members) {
    services.observer.stepBegins(execution.observed, execution.observed, execution.attempt);
  }
  try {
    const ctx = new Context(definition, members, services.logger);
    const called = definition.batch.run(
      ctx,
      members.map((member) => new Item(member)),
    );
    const returned = isThenable(called)
      ? await withinTime(called, services.limits.maxStepMs, (late) => {
          for (const { execution } of members) execution.control.interrupt(late);
        })
      : called;
    return outcomesOf(returned, members.length);
  } catch (error) {
    return members.map(() => ({ kind: "failed", error }));
  }
}

/** The outcomes of `count` runs by the value that the code returned. */
function outcomesOf(returned: unknown, count: number): BatchOutcome[] {
  if (!Array.isArray(returned)) return Array<BatchOutcome>(count).fill(outcomeOf(returned));
  if (returned.length === count) return Array.from(returned, outcomeOf);
  const error = new InvalidOutcome(
    `a batch of ${count} runs returned an array of ${returned.length}: return one result, or ctx.fail(error), ` +
      "for each item, in the order of the items; to give all runs one result that is an array, return it in an object",
  );
  return Array<BatchOutcome>(count).fill({ kind: "invalid", error });
}

function outcomeOf(value: unknown): BatchOutcome {
  return value instanceof Failure
    ? { kind: "failed", error: value.error }
    : { kind: "returned", result: value };
}

/** The return value of `ctx.fail(error)`. */
class Failure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

function fail(error: unknown): BatchFailure;
function fail(error: unknown): unknown {
  return new Failure(error);
}

/** One run, as the code sees it. The signal is made when the code first asks for it. */
class Item implements BatchItem {
  readonly runId: string;
  readonly input: unknown;
  readonly attempt: number;
  readonly #execution: Execution;

  constructor({ execution, input }: BatchMember) {
    this.runId = execution.runId;
    this.input = input;
    this.attempt = execution.progress.attempt;
    this.#execution = execution;
  }

  get signal(): AbortSignal {
    return this.#execution.control.signal;
  }
}

class Context implements BatchContext {
  readonly name: string;
  readonly version: number;
  readonly #members: readonly BatchMember[];
  readonly #logger: Logger;
  #signal: AbortSignal | undefined;
  #log: Logger | undefined;

  constructor({ name, version }: BatchDefinition, members: readonly BatchMember[], logger: Logger) {
    this.name = name;
    this.version = version;
    this.#members = members;
    this.#logger = logger;
  }

  get signal(): AbortSignal {
    return (this.#signal ??= whenAllAborted(this.#members.map(({ execution }) => execution.control.signal)));
  }

  get log(): Logger {
    const { name } = this;
    return (this.#log ??= bindLogger(this.#logger, { name, runs: this.#members.length }));
  }

  get fail(): BatchContext["fail"] {
    return fail;
  }

  get transaction(): never {
    throw new NotSupported(
      "a batch job has no ctx.transaction: each of its runs is committed on its own. " +
        "Use your own connection, or a job without the option batch",
    );
  }
}

/** A signal that is aborted when the last of these is. */
function whenAllAborted(signals: readonly AbortSignal[]): AbortSignal {
  const controller = new AbortController();
  let left = signals.filter(({ aborted }) => !aborted).length;
  const onAbort = (reason: unknown): void => {
    if (--left <= 0) controller.abort(reason);
  };
  for (const signal of signals) {
    if (!signal.aborted) signal.addEventListener("abort", () => onAbort(signal.reason), { once: true });
  }
  if (left === 0) controller.abort(signals[0]?.reason);
  return controller.signal;
}
