/**
 * The runs that a worker executes: begins each, ends it when its code has returned, and interrupts it when it was cancelled or its claim is
 * gone. Owned by the worker.
 */

import type { AnyDefinition } from "../define/definition.js";
import { RunCancelled, WorkflowVersionMismatch } from "../define/errors.js";
import { Execution, type Successor } from "./execution.js";
import { execute } from "./executor.js";
import type { Feeder } from "./feeder.js";
import type { Releaser } from "./releaser.js";
import type { Surroundings } from "./surroundings.js";

/** Of runs that were cancelled while a claim was in flight; where claims wait, one always is. */
const maxMeanwhile = 10_000;

export interface ExecutionsHost {
  readonly surroundings: Surroundings;
  readonly releaser: Releaser;
  readonly feeders: ReadonlyMap<string, Feeder>;
  /** By `name@version`. */
  readonly served: ReadonlyMap<string, AnyDefinition>;
  /** How long the code of a cancelled run may take to notice. */
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

  /** Executes a claimed run to the end of its claim. Answers the run that was handed over instead, if the worker may begin it. */
  async execute(given: Successor, queue: string): Promise<Successor | null> {
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
      surroundings.flusher.drop(runId);
    }
    const execution = new Execution(given, definition, queue);
    if (this.#byRunId.size === 0) this.#host.onBusy();
    this.#byRunId.set(runId, execution);
    surroundings.observer.begin(execution);
    await execute(execution, surroundings);
    surroundings.observer.end(execution);
    if (this.#byRunId.get(runId) === execution) this.#byRunId.delete(runId);
    // The code of the step has returned: a cancelled run loses its holder, one stopped midway is runnable again.
    if (execution.isCancelled) void releaser.persist(execution);
    else if (execution.aborted && execution.isStopping) await releaser.letGo([execution]);
    const { successor } = execution;
    if (successor !== null && !this.#host.mayBegin()) {
      await releaser.letGo([{ runId: successor.run.runId, claimId: successor.claimId }]);
      execution.successor = null;
    }
    this.#host.onEnded();
    return execution.successor;
  }

  /** A run was cancelled: here it is interrupted, or not begun. */
  cancel(runId: string, reason?: string): void {
    const { surroundings, releaser, feeders, drainMs } = this.#host;
    surroundings.flusher.drop(runId);
    if (surroundings.claiming.size === 0 || this.#cancelledMeanwhile.size > maxMeanwhile)
      this.#cancelledMeanwhile.clear();
    if (surroundings.claiming.size > 0) this.#cancelledMeanwhile.add(runId);
    const unstarted = [...feeders.values()].map((feeder) => feeder.drop(runId)).find(Boolean);
    if (unstarted !== undefined) releaser.release([{ runId, claimId: unstarted.claimId }]);
    const execution = this.#byRunId.get(runId);
    if (execution === undefined || execution.isCancelled) return;
    execution.abort(new RunCancelled(runId, reason));
    // Then its partition key is given to the next, as after a lost claim.
    const timer = setTimeout(() => {
      if (this.#byRunId.get(runId) === execution) releaser.release([execution]);
    }, drainMs);
    timer.unref();
  }

  /** No claim that is in flight can bring a run that was cancelled before, if there is none. */
  forgetCancelled(): void {
    if (this.#host.surroundings.claiming.size === 0) this.#cancelledMeanwhile.clear();
  }

  /** Nothing of what it has in hand is to be committed any more. */
  abortAll(reason: Error): void {
    const { surroundings, feeders } = this.#host;
    for (const execution of this) execution.abort(reason);
    this.#byRunId.clear();
    for (const feeder of feeders.values()) feeder.takeUnstarted();
    surroundings.flusher.dropAll();
    surroundings.recorder.dropAll();
  }
}
