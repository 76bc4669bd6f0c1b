/**
 * The runs that a worker executes: begins each, ends it when its code has returned, and interrupts it when it was cancelled or its claim is
 * gone; code that does not return after that is not waited for longer than `drainTimeout`. Owned by the worker.
 */

import type { AnyDefinition } from "../define/definition.js";
import { RunCancelled, WorkflowVersionMismatch } from "../values/errors.js";
import { Execution, type Successor } from "../run/execution.js";
import { execute } from "./execute.js";
import type { Claimer } from "./claimer.js";
import type { Releaser } from "./release.js";
import type { Surroundings } from "../run/worker-services.js";

/** Of runs that were cancelled while a claim was in flight; where claims wait, one always is. */
const maxMeanwhile = 10_000;
/** A run whose outcome, and failure too, the database refuses is tried again at this pace. */
const refusedMs = 1_000;

export interface ExecutionsHost {
  readonly surroundings: Surroundings;
  readonly releaser: Releaser;
  readonly claimers: ReadonlyMap<string, Claimer>;
  /** By `name@version`. */
  readonly served: ReadonlyMap<string, AnyDefinition>;
  /** How long the code of a run may take to notice that it was cancelled, or that its claim is gone. */
  readonly drainMs: number;
  /** Whether the worker may begin another run. */
  mayBegin(): boolean;
  /** The first run begins, after a time without any. */
  onBusy(): void;
  /** A run has ended. */
  onEnded(): void;
}

export class Executions implements Iterable<Execution> {
  #host!: ExecutionsHost;
  readonly #byRunId = new Map<string, Execution>();
  /** Aborted runs whose code has not returned, each with the timer that ends the wait for it. */
  readonly #waiting = new Map<Execution, NodeJS.Timeout>();
  /** Runs that were cancelled while a claim was in flight, which may bring them. */
  readonly #cancelledMeanwhile = new Set<string>();

  /** From now on there may be some. */
  open(host: ExecutionsHost): void {
    this.#host = host;
  }

  get size(): number {
    return this.#byRunId.size;
  }

  get(runId: string): Execution | undefined {
    return this.#byRunId.get(runId);
  }

  [Symbol.iterator](): Iterator<Execution> {
    return this.#byRunId.values();
  }

  /** This worker was handed a run that it has no code for. */
  #mismatch(name: string, got: number): WorkflowVersionMismatch {
    const versions = [...this.#host.served.values()]
      .filter((definition) => definition.name === name)
      .map(({ version }) => version)
      .toSorted((a, b) => a - b);
    const serves = versions.length === 0 ? "no version of it" : `version ${versions.join(", ")}`;
    return new WorkflowVersionMismatch(
      `this worker does not serve ${name}@${got} but ${serves}: add that version to what it serves`,
      { expected: versions.at(-1) ?? null, got },
    );
  }

  /**
   * Executes a claimed run to the end of its claim. Answers the run that was handed over instead, if the worker may
   * begin it; "left" if the slot was given to others before the code of the run returned.
   */
  async execute(given: Successor, queue: string): Promise<Successor | null | "left"> {
    const { surroundings, releaser } = this.#host;
    const { run, claimId } = given;
    const { runId } = run;
    const definition = this.#host.served.get(`${run.name}@${run.version}`);
    if (definition === undefined) {
      const error = this.#mismatch(run.name, run.version);
      surroundings.logger.error({ err: error, runId }, "pawl: a run was released");
      releaser.release([{ runId, claimId }]);
      return null;
    }
    if (this.#cancelledMeanwhile.delete(runId)) {
      releaser.release([{ runId, claimId }]);
      return null;
    }
    if (run.uniqueLost) {
      surroundings.logger.warn({ runId }, "pawl: unique_lost: the unique key was taken meanwhile");
      surroundings.observer.uniqueLost(runId, run.name, run.version);
    }
    const older = this.#byRunId.get(runId);
    if (older !== undefined) {
      older.abort(new Error("the claim on this run was lost"));
      surroundings.commits.drop(runId);
    }
    const execution = new Execution(given, definition, queue);
    if (this.#byRunId.size === 0) this.#host.onBusy();
    this.#byRunId.set(runId, execution);
    surroundings.observer.begin(execution);
    execution.onLeft = this.#waitForCode;
    await execute(execution, surroundings);
    if (execution.aborted && this.#isLeft(execution)) return "left";
    return this.#end(execution);
  }

  /** The code of a run has returned, or nobody waits for it any longer. */
  async #end(execution: Execution): Promise<Successor | null> {
    const { surroundings, releaser } = this.#host;
    const { runId } = execution;
    surroundings.observer.end(execution);
    const isInHand = this.#byRunId.get(runId) === execution;
    if (isInHand) this.#byRunId.delete(runId);
    // Release a claim that no outcome has ended, if it is held at all: a cancelled run loses its holder
    // and its partition key goes to the next, any other run is runnable again. Claims of a lost lease
    // expire like those of a dead worker.
    if (!execution.isSettled && (isInHand || execution.isCancelled || execution.isStopping)) {
      if (execution.isStopping) await releaser.letGo([execution]);
      else releaser.release([execution], execution.isRefused ? refusedMs : 0);
    }
    const { successor } = execution;
    if (successor !== null && !this.#host.mayBegin()) {
      await releaser.letGo([{ runId: successor.run.runId, claimId: successor.claimId }]);
      execution.successor = null;
    }
    this.#host.onEnded();
    return execution.successor;
  }

  /** Gives the code of an aborted run some time to return: code that never does must not keep its slot for good. */
  readonly #waitForCode = (execution: Execution): void => {
    const timer = setTimeout(() => void this.#leave(execution), this.#host.drainMs);
    timer.unref();
    this.#waiting.set(execution, timer);
  };

  /** Frees the slot of code that has not returned in time; whatever it still does is dropped. */
  async #leave(execution: Execution): Promise<void> {
    const { surroundings, claimers } = this.#host;
    const { runId, definition, queue } = execution;
    this.#waiting.delete(execution);
    if (this.#host.mayBegin()) {
      surroundings.logger.warn(
        { runId, name: definition.name, version: definition.version },
        "pawl: the code of an aborted run has not returned within drainTimeout: its slot is free for others",
      );
    }
    await this.#end(execution);
    claimers.get(queue)?.leave();
  }

  /** Whether the slot of an aborted run, whose code has just returned, was freed before. */
  #isLeft(execution: Execution): boolean {
    const timer = this.#waiting.get(execution);
    clearTimeout(timer);
    this.#waiting.delete(execution);
    return timer === undefined;
  }

  /** A run was cancelled: here it is interrupted, or not begun. */
  cancel(runId: string, reason?: string): void {
    const { surroundings, releaser, claimers } = this.#host;
    surroundings.commits.drop(runId);
    if (surroundings.claiming.size === 0 || this.#cancelledMeanwhile.size > maxMeanwhile)
      this.#cancelledMeanwhile.clear();
    if (surroundings.claiming.size > 0) this.#cancelledMeanwhile.add(runId);
    const unstarted = [...claimers.values()].map((claimer) => claimer.drop(runId)).find(Boolean);
    if (unstarted !== undefined) releaser.release([{ runId, claimId: unstarted.claimId }]);
    const execution = this.#byRunId.get(runId);
    if (execution === undefined || execution.isCancelled) return;
    execution.abort(new RunCancelled(runId, reason));
  }

  /** No claim that is in flight can bring a run that was cancelled before, if there is none. */
  forgetCancelled(): void {
    if (this.#host.surroundings.claiming.size === 0) this.#cancelledMeanwhile.clear();
  }

  /** Nothing of what it has in hand is to be committed any more. */
  abortAll(reason: Error): void {
    const { surroundings, claimers } = this.#host;
    for (const execution of this) execution.abort(reason);
    this.#byRunId.clear();
    for (const claimer of claimers.values()) claimer.takeUnstarted();
    surroundings.commits.dropAll();
    surroundings.journal.dropAll();
  }
}
