/**
 * The repeated sweeps that every worker runs: claims of dead workers end, runs that nobody served are placed, and blocked
 * partition keys are put right (every `reapInterval`, cannot be switched off), terminal runs past their retention are deleted (every `sweepInterval`).
 * Never a boot event, and never more than a bounded batch per call. An outage only skips a round.
 */

import type { Logger } from "../define/logger.js";
import type { WorkerStore } from "../store/store.js";

const batch = 1_000;
/** Fewer: each holds a lock while it is looked at. */
const keysAtOnce = 200;

export interface SweeperOptions {
  readonly store: Pick<WorkerStore, "reap" | "place" | "repairKeys" | "sweep">;
  readonly logger: Logger;
  readonly reapMs: number;
  /** null: retention is somebody else's. */
  readonly sweepMs: number | null;
  /** Runs have become claimable: in this queue, or (null) in any. */
  readonly onClaimable: (queue: string | null) => void;
}

export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  #isStopped = false;
  /** Where the last look at blocked keys stopped. */
  #lastKey: string | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#repeat(() => this.#recover(), options.reapMs);
    if (options.sweepMs !== null) this.#repeat(() => this.#expire(), options.sweepMs);
  }

  /** Resolves when no call is in flight. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#running;
  }

  async #recover(): Promise<void> {
    const { store, logger, onClaimable } = this.#options;
    let reaped: number;
    do {
      reaped = await store.reap(batch);
      if (reaped > 0) {
        logger.warn({ runs: reaped }, "pawl: runs of dead workers are runnable again");
        onClaimable(null);
      }
    } while (reaped === batch && !this.#isStopped);
    let placed: string[];
    do {
      placed = await store.place(batch);
      for (const queue of placed) onClaimable(queue);
    } while (placed.length > 0 && !this.#isStopped);
    const { last, queues } = await store.repairKeys(this.#lastKey, keysAtOnce);
    this.#lastKey = last;
    for (const queue of queues) onClaimable(queue);
  }

  async #expire(): Promise<void> {
    let swept: number;
    do swept = await this.#options.store.sweep(batch);
    while (swept === batch && !this.#isStopped);
  }

  /** Calls `sweep` every so often, with jitter so that many workers spread out; one call at a time. */
  #repeat(sweep: () => Promise<void>, everyMs: number): void {
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        const call = sweep()
          .catch((error: unknown) => {
            this.#options.logger.warn({ err: error }, "pawl: a sweep failed, trying again at the next");
          })
          .finally(() => {
            if (!this.#isStopped) this.#repeat(sweep, everyMs);
          });
        this.#running = Promise.all([this.#running, call]).then(() => {});
      },
      everyMs * (0.8 + Math.random() * 0.4),
    );
    timer.unref();
    this.#timers.add(timer);
  }
}
