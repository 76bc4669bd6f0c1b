/**
 * Hears of signals for workflows that wait for one while their body is alive, because another step is running. Those that come from
 * this process are heard of at once, the others by a look every second, made only while somebody waits. Owned by the worker.
 */

import type { Logger } from "../values/logger.js";
import type { WorkerStore } from "../store/store.js";

const lookMs = 1_000;

export class Watcher {
  readonly #store: Pick<WorkerStore, "inboxSeqs">;
  readonly #logger: Logger;
  readonly #waiting = new Map<string, (inboxSeq: number) => void>();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Pick<WorkerStore, "inboxSeqs">, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  /** Calls `hear` with the seq of the last signal of the run, whenever it is looked at, until `forget`. */
  watch(runId: string, hear: (inboxSeq: number) => void): void {
    this.#waiting.set(runId, hear);
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => void this.#look([...this.#waiting.keys()]), lookMs);
    this.#timer.unref();
  }

  forget(runId: string): void {
    if (this.#waiting.delete(runId) && this.#waiting.size === 0) this.stop();
  }

  /** A signal has come into the inbox of this run. */
  tell(runId: string): void {
    if (this.#waiting.has(runId)) void this.#look([runId]);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #look(runIds: readonly string[]): Promise<void> {
    try {
      const seqs = await this.#store.inboxSeqs(runIds);
      for (const [runId, inboxSeq] of seqs) this.#waiting.get(runId)?.(inboxSeq);
    } catch (error) {
      this.#logger.warn({ err: error }, "pawl: inboxes could not be looked at, trying again");
    }
  }
}
