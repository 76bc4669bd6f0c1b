/**
 * The runs that a worker executes. It begins each, ends it when its code has returned, and aborts
 * it when it was cancelled, is past its deadline, or its claim is lost. It waits at most `drainTimeout` for code that does
 * not return after an abort, and then frees the slot. Owned by the worker.
 */

import type { AnyDefinition } from "../define/definition.js";
import { Execution, type RunClaim } from "../run/execution.js";
import type { WorkerServices } from "../run/worker-services.js";
import { DeadlineExceeded, RunCancelled, WorkflowVersionMismatch } from "../values/errors.js";
import type { Claimer } from "./claimer.js";
import type { Claimers } from "./claimers.js";
import { Deadlines } from "./deadlines.js";
import { endOf, execute } from "./execute.js";
import type { Releaser } from "./release.js";

/**
 * Runs that were cancelled while a claim was in flight. Where claims wait at a server, one always
 * is.
 */
const maxCancelled = 10_000;
/** A run whose every outcome the database refuses is tried again after this time. */
const refusedMs = 1_000;

export interface ExecutionsHost {
  readonly services: WorkerServices;
  readonly releaser: Releaser;
  readonly claimers: Claimers;
  /** By `name@version`. */
  readonly served: ReadonlyMap<string, AnyDefinition>;
  /** How long the code of a run may take to return after an abort. */
  readonly drainMs: number;
  /** Whether the worker may begin another run. */
  mayBegin(): boolean;
  /** The first run begins, after a time without any. */
  onBusy(): void;
  /** A run has ended. */
  onEnded(): void;
}

export class Executions implements Iterable<Execution> {
  readonly #host: ExecutionsHost;
  readonly #byRunId = new Map<string, Execution>();
  /** Aborted runs whose code has not returned, each with the timer that ends the wait for it. */
  readonly #aborted = new Map<Execution, NodeJS.Timeout>();
  /** Runs that were cancelled while a claim was in flight, which may bring them. */
  readonly #cancelledMeanwhile = new Set<string>();

  readonly #deadlines: Deadlines;

  constructor(host: ExecutionsHost) {
    this.#host = host;
    this.#deadlines = new Deadlines(host.services);
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

  /**
   * Executes a claimed run until its claim ends. Answers the next run of its slot, if its commit
   * has claimed one and the worker may begin it; "left" if the slot was freed before the code
   * returned.
   */
  async execute(claim: RunClaim, claimer: Claimer): Promise<RunClaim | null | "left"> {
    const { services, claimers } = this.#host;
    const { run } = claim;
    const { runId } = run;
    const definition = this.#definitionOf(claim);
    if (definition === null) return null;
    if (run.uniqueLost) {
      services.logger.warn({ runId }, "pawl: unique_lost: the unique key was taken meanwhile");
      services.observer.uniqueLost(runId, run.name, run.version);
    }
    const older = this.#byRunId.get(runId);
    if (older !== undefined) {
      older.control.abort(new Error("the claim on this run was lost"));
      services.commits.drop(runId);
    }
    const execution = new Execution(claim, definition, claimer, services, this.#waitForCode);
    if (this.#byRunId.size === 0) this.#host.onBusy();
    this.#byRunId.set(runId, execution);
    services.observer.begin(execution.observed);
    if (run.extra?.deadlineMs !== undefined) await this.#deadlines.watch(execution, run.extra.deadlineMs);
    // It may have waited long for its slot, and somebody may have paused it meanwhile.
    const mayBegin = execution.mayBeginStep();
    let end: "ended" | "refused" = "ended";
    if (mayBegin === true || (await mayBegin)) {
      try {
        if (!execution.control.isAborted) await execute(execution, claimers);
      } catch (error) {
        end = endOf(execution, error);
      }
    }
    if (execution.control.isAborted && this.#isLeft(execution)) return "left";
    return this.#end(execution, end === "refused" ? refusedMs : 0);
  }

  /**
   * The definition of a run. Null: the worker does not execute the run, and its claim is released.
   */
  #definitionOf({ run, claimId }: RunClaim): AnyDefinition | null {
    const { services, releaser, served } = this.#host;
    const { runId, name, version } = run;
    const definition = served.get(`${name}@${version}`);
    if (definition === undefined) {
      const error = this.#mismatch(name, version);
      services.logger.error({ err: error, runId }, "pawl: a run was released");
    }
    const isCancelled = this.#cancelledMeanwhile.delete(runId);
    if (definition !== undefined && !isCancelled) return definition;
    releaser.release([{ runId, claimId }]);
    return null;
  }

  /** The worker was handed a run that it has no code for. */
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
   * The code of a run has returned, or the worker has stopped waiting for it. Answers the next run of
   * its slot. Nothing is awaited, and no promise made, for a run whose outcome has ended its claim.
   */
  #end(execution: Execution, releaseAfterMs: number): RunClaim | null | Promise<RunClaim | null> {
    const { services, releaser } = this.#host;
    const { runId, progress, control } = execution;
    services.observer.end(execution.observed);
    this.#deadlines.forget(execution);
    const isCurrent = this.#byRunId.get(runId) === execution;
    if (isCurrent) this.#byRunId.delete(runId);
    // Release a claim that no outcome has ended, if it is held at all: a cancelled run loses its
    // holder and its partition key goes to the next, any other run is runnable again. Claims of a
    // lost lease expire like those of a dead worker.
    const isHeld = !progress.isSettled && (isCurrent || control.isCancelled || control.isStopping);
    const { successor } = progress;
    const mayFollow = successor === null || this.#host.mayBegin();
    if ((isHeld && control.isStopping) || !mayFollow) {
      const following = mayFollow ? [] : [{ runId: successor.run.runId, claimId: successor.claimId }];
      const claims = isHeld ? [execution, ...following] : following;
      return releaser.releaseAndWait(claims).then(() => this.#ended(mayFollow ? successor : null));
    }
    if (isHeld) releaser.release([execution], releaseAfterMs);
    return this.#ended(successor);
  }

  #ended(successor: RunClaim | null): RunClaim | null {
    this.#host.onEnded();
    return successor;
  }

  /**
   * Gives the code of an aborted run some time to return: code that never does must not keep its
   * slot.
   */
  readonly #waitForCode = (execution: Execution): void => {
    const timer = setTimeout(() => void this.#leave(execution), this.#host.drainMs);
    timer.unref();
    this.#aborted.set(execution, timer);
  };

  /** Frees the slot of code that has not returned in time. Its outcome will be dropped. */
  async #leave(execution: Execution): Promise<void> {
    const { services } = this.#host;
    const { runId, definition } = execution;
    this.#aborted.delete(execution);
    if (this.#host.mayBegin()) {
      services.logger.warn(
        { runId, name: definition.name, version: definition.version },
        "pawl: the code of an aborted run has not returned within drainTimeout: its slot is free for others",
      );
    }
    await this.#end(execution, 0);
    execution.claimer.leave();
  }

  /** Whether the slot of an aborted run, whose code has just returned, was freed before. */
  #isLeft(execution: Execution): boolean {
    const timer = this.#aborted.get(execution);
    clearTimeout(timer);
    this.#aborted.delete(execution);
    return timer === undefined;
  }

  /** A run was cancelled: its execution is aborted, or does not begin. */
  cancel(runId: string, reason?: string): void {
    this.#abortEnded(runId, new RunCancelled(runId, reason));
  }

  /** A run has failed by its deadline: the same. */
  overdue(runId: string): void {
    this.#abortEnded(runId, new DeadlineExceeded(runId));
  }

  /** A heartbeat says that a run was ended from outside. */
  ended(runId: string): void {
    if (this.#byRunId.get(runId)?.isOverdue === true) this.overdue(runId);
    else this.cancel(runId);
  }

  #abortEnded(runId: string, reason: Error): void {
    const { services, releaser, claimers } = this.#host;
    const { claiming } = services.worker;
    services.commits.drop(runId);
    if (claiming.size === 0 || this.#cancelledMeanwhile.size > maxCancelled) this.#cancelledMeanwhile.clear();
    if (claiming.size > 0) this.#cancelledMeanwhile.add(runId);
    const unstarted = [...claimers].map(({ slots }) => slots.drop(runId)).find(Boolean);
    if (unstarted !== undefined) releaser.release([unstarted]);
    const control = this.#byRunId.get(runId)?.control;
    if (control === undefined || control.isCancelled) return;
    control.abort(reason);
  }

  /** Without a claim in flight, no claim can bring a run that was cancelled before. */
  forgetCancelled(): void {
    if (this.#host.services.worker.claiming.size === 0) this.#cancelledMeanwhile.clear();
  }

  /** Aborts all executions. None of their outcomes will be committed. */
  abortAll(reason: Error): void {
    const { services, claimers } = this.#host;
    for (const { control } of this) control.abort(reason);
    this.#byRunId.clear();
    for (const { slots } of claimers) slots.takeUnstarted();
    services.commits.dropAll();
    services.journal.dropAll();
  }
}
