/**
 * The deadlines of the runs that a worker executes. A timer says when to ask the database, whose
 * clock decides: it fails the run, and the worker aborts the step. So a step sees `ctx.signal` at
 * its deadline, and not only with the next sweep and heartbeat. Owned by `executions.ts`.
 */

import type { Execution } from "../run/execution.js";
import type { WorkerServices } from "../run/worker-services.js";
import { emitOverdue } from "../observe/overdue.js";

/** The longest time that a timer of Node takes. */
const longestMs = 2_147_483_647;
/** How long to wait before asking again: after an outage, or if the run is locked. */
const againMs = 250;

export class Deadlines {
  readonly #services: WorkerServices;
  readonly #timers = new Map<Execution, NodeJS.Timeout>();

  constructor(services: WorkerServices) {
    this.#services = services;
  }

  /** Resolves at once, or when a run that was claimed past its deadline has failed. */
  async watch(execution: Execution, deadlineMs: number): Promise<void> {
    if (deadlineMs <= 0) await this.#ask(execution);
    else this.#after(execution, deadlineMs);
  }

  forget(execution: Execution): void {
    clearTimeout(this.#timers.get(execution));
    this.#timers.delete(execution);
  }

  #after(execution: Execution, waitMs: number): void {
    const timer = setTimeout(() => void this.#ask(execution), Math.min(waitMs, longestMs));
    timer.unref();
    this.#timers.set(execution, timer);
  }

  async #ask(execution: Execution): Promise<void> {
    const { store, hub, observer, logger } = this.#services;
    const { runId, control, progress } = execution;
    let dueMs: number | null = againMs;
    try {
      const answer = await store.failOverdue([runId]);
      emitOverdue(observer.events, answer.failed);
      hub.overdue(answer.failed);
      hub.claimable(answer.claimable);
      ({ dueMs } = answer);
    } catch (error) {
      logger.warn({ err: error, runId }, "pawl: the deadline of a run could not be checked, trying again");
    }
    // The run has ended: by its deadline, or otherwise.
    if (dueMs === null || control.isAborted || progress.isSettled) return;
    this.#after(execution, Math.max(dueMs, againMs));
  }
}
