/**
 * The repeated sweeps that every worker runs: claims of dead workers end, runs that nobody served are placed, and blocked
 * partition keys are put right (every `reapInterval`, cannot be switched off), terminal runs past their retention are deleted
 * (every `sweepInterval`). Never a boot event, and never more than a bounded batch per call. An outage only skips a round.
 *
 * A worker at rest looks more rarely, but never later than when a lease that it knows of would pass: a dead worker is
 * found as soon as ever. Repairs that have to walk far (an old transaction keeps what ended long ago) are followed by a rest
 * many times as long.
 */

import type { Logger } from "../values/logger.js";
import type { Recovered, WorkerStore } from "../store/store.js";
import type { Emitter } from "../observe/events.js";

const batch = 1_000;
/** At rest, so many times `reapInterval`, but never longer than half a lease: a worker that came meanwhile lives that long. */
const restRounds = 5;
const repairRest = 10;

export interface SweeperOptions {
  readonly store: Pick<WorkerStore, "recover" | "sweep">;
  readonly logger: Logger;
  readonly events?: Emitter;
  readonly reapMs: number;
  /** null: retention is somebody else's. */
  readonly sweepMs: number | null;
  readonly leaseMs: number;
  /** Runs are executed: their keys may have to be put right. */
  readonly isBusy: () => boolean;
  /** Runs have become claimable: in this queue, or (null) in any. */
  readonly onClaimable: (queue: string | null) => void;
}

export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  #isStopped = false;
  /** Where the last look stopped. */
  #marks: string | null = null;
  /** No repairs before that. */
  #repairsAtMs = 0;
  #resting: { readonly timer: NodeJS.Timeout; readonly untilMs: number } | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#recoverAfter(spread(options.reapMs));
    if (options.sweepMs !== null) this.#expireAfter(spread(options.sweepMs));
  }

  /** A worker at rest has got something to do. */
  hurry(): void {
    if (this.#resting === null || this.#isStopped) return;
    const waitMs = spread(this.#options.reapMs);
    if (this.#resting.untilMs <= performance.now() + waitMs) return;
    clearTimeout(this.#resting.timer);
    this.#timers.delete(this.#resting.timer);
    this.#recoverAfter(waitMs);
  }

  /** Resolves when no call is in flight. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#running;
  }

  #recoverAfter(waitMs: number): void {
    const timer = this.#after(waitMs, async () => {
      this.#resting = null;
      let nextMs = spread(this.#options.reapMs);
      await this.#guard(async () => {
        nextMs = await this.#recover();
      });
      if (!this.#isStopped) this.#recoverAfter(nextMs);
    });
    this.#resting = { timer, untilMs: performance.now() + waitMs };
  }

  #expireAfter(waitMs: number): void {
    this.#after(waitMs, async () => {
      await this.#guard(() => this.#expire());
      if (!this.#isStopped) this.#expireAfter(spread(this.#options.sweepMs!));
    });
  }

  /** One round; answers how long to wait for the next. */
  async #recover(): Promise<number> {
    const { store, logger, events, reapMs, leaseMs, isBusy, onClaimable } = this.#options;
    const repairs = performance.now() >= this.#repairsAtMs;
    let isQuiet = true;
    let found: Recovered;
    do {
      const beganMs = performance.now();
      found = await store.recover({ limit: batch, repairs, marks: this.#marks });
      this.#marks = found.marks;
      if (repairs) this.#repairsAtMs = performance.now() + (performance.now() - beganMs) * repairRest;
      if (found.reaped > 0) {
        logger.warn({ runs: found.reaped }, "pawl: runs of dead workers are runnable again");
        events?.emit("reaper.reaped", { runs: found.reaped });
        onClaimable(null);
      }
      for (const queue of found.queues) onClaimable(queue);
      isQuiet &&= found.reaped === 0 && found.queues.length === 0 && !found.isWaited;
    } while (found.again && !this.#isStopped);
    if (!isQuiet || isBusy()) return spread(reapMs);
    // A little after the lease, and not all workers at once.
    const untilLeaseMs = found.dueMs + reapMs * 0.2 * Math.random();
    return Math.max(
      spread(reapMs),
      Math.min(untilLeaseMs, spread(Math.min(reapMs * restRounds, leaseMs / 2))),
    );
  }

  async #expire(): Promise<void> {
    const { store, events } = this.#options;
    let last: string | null = null;
    do {
      const { swept, last: reached } = await store.sweep(batch, last);
      last = reached;
      if (swept > 0) events?.emit("sweeper.swept", { runs: swept });
    } while (last !== null && !this.#isStopped);
  }

  #after(waitMs: number, round: () => Promise<void>): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#running = Promise.all([this.#running, round()]).then(() => {});
    }, waitMs);
    timer.unref();
    this.#timers.add(timer);
    return timer;
  }

  async #guard(sweep: () => Promise<void>): Promise<void> {
    try {
      await sweep();
    } catch (error) {
      this.#options.logger.warn({ err: error }, "pawl: a sweep failed, trying again at the next");
    }
  }
}

/** With jitter, so that many workers spread out. */
function spread(everyMs: number): number {
  return everyMs * (0.8 + Math.random() * 0.4);
}
