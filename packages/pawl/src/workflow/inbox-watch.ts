/**
 * Tells workflows of signals that arrive while their body is alive, because another of its steps
 * runs. Signals of this process are told at once. The others are found by a poll every second,
 * which runs only while a workflow waits. Owned by the worker.
 */

import type { Logger } from "../values/logger.js";
import type { WorkerStore } from "../store/store.js";

const pollMs = 1_000;

export class InboxWatch {
  readonly #store: Pick<WorkerStore, "inboxSeqs">;
  readonly #logger: Logger;
  readonly #waiting = new Map<string, (inboxSeq: number) => void>();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Pick<WorkerStore, "inboxSeqs">, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  /** Calls the listener with the seq of the run's last signal, after every poll, until `forget`. */
  watch(runId: string, listener: (inboxSeq: number) => void): void {
    this.#waiting.set(runId, listener);
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => void this.#poll([...this.#waiting.keys()]), pollMs);
    this.#timer.unref();
  }

  forget(runId: string): void {
    if (this.#waiting.delete(runId) && this.#waiting.size === 0) this.stop();
  }

  /** A signal has arrived for this run. */
  onSignal(runId: string): void {
    if (this.#waiting.has(runId)) void this.#poll([runId]);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #poll(runIds: readonly string[]): Promise<void> {
    try {
      const seqs = await this.#store.inboxSeqs(runIds);
      for (const [runId, inboxSeq] of seqs) this.#waiting.get(runId)?.(inboxSeq);
    } catch (error) {
      this.#logger.warn({ err: error }, "pawl: inboxes could not be read, trying again");
    }
  }
}
