/**
 * The background sweeps of a worker. Every `reapInterval` it reclaims runs of dead workers, fails
 * runs past their deadline, places runs that nobody served, and repairs blocked partition keys; that
 * cannot be switched off. Every `sweepInterval` it deletes ended runs past their retention. It also
 * works off bulk operations, by itself, so that a long one delays nothing else. Each call handles a
 * bounded batch. An outage only skips a round.
 *
 * An idle worker checks less often, but in time for each lease that it knows of, so a dead worker
 * is found as soon as by a busy one. After repairs that took long (an old transaction keeps ended
 * runs in the indexes) it rests many times as long. Made by the worker, and by the server.
 */

import type { Logger } from "../values/logger.js";
import type { OverdueRun, Recovered, WorkerStore } from "../store/store.js";
import type { Emitter } from "../observe/events.js";
import { emitOverdue } from "../observe/overdue.js";

const batch = 1_000;
/** How many runs one call acts on. They stay locked until it ends. */
const bulkBatch = 1_000;
/** The interval of an idle worker: so many times `reapInterval`, but at most half a lease. */
const restRounds = 5;
const repairRest = 10;

export interface SweeperOptions {
  readonly store: Pick<WorkerStore, "recover" | "sweep" | "workBulk">;
  readonly logger: Logger;
  readonly events?: Emitter;
  readonly reapMs: number;
  /** null: another process deletes old runs. */
  readonly sweepMs: number | null;
  readonly leaseMs: number;
  /** Runs are executed: their partition keys may need repair. */
  readonly isBusy: () => boolean;
  /** Runs have become claimable: in this queue, or (null) in any. */
  readonly onClaimable: (queue: string | null) => void;
  /** Runs have failed by their deadline. */
  readonly onOverdue: (failed: readonly OverdueRun[]) => void;
}

export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  #isStopped = false;
  /** Where the last call stopped, as it answered. */
  #marks: string | null = null;
  /** No repairs before this time. */
  #repairsAtMs = 0;
  #resting: { readonly timer: NodeJS.Timeout; readonly untilMs: number } | null = null;
  #running: Promise<void> = Promise.resolve();
  /** It works on bulk operations, or will soon. */
  #isInBulk = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#recoverAfter(spread(options.reapMs));
    if (options.sweepMs !== null) this.#expireAfter(spread(options.sweepMs));
  }

  /** An idle worker has something to do: check soon. */
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

  #workBulkAfter(waitMs: number): void {
    this.#isInBulk = true;
    this.#after(waitMs, async () => {
      let isFound = false;
      await this.#guard(async () => {
        isFound = await this.#workBulk();
      });
      this.#isInBulk = false;
      if (isFound && !this.#isStopped) this.#workBulkAfter(spread(this.#options.reapMs));
    });
  }

  /** One round. Answers how long to wait for the next. */
  async #recover(): Promise<number> {
    const { store, logger, events, reapMs, leaseMs, isBusy, onClaimable, onOverdue } = this.#options;
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
      if (found.overdue.length > 0) {
        logger.warn({ runs: found.overdue.length }, "pawl: runs failed, because their deadline has passed");
        if (events !== undefined) emitOverdue(events, found.overdue);
        onOverdue(found.overdue);
      }
      if (found.hasBulk && !this.#isInBulk) this.#workBulkAfter(0);
      for (const queue of found.queues) onClaimable(queue);
      isQuiet &&= found.reaped === 0 && found.queues.length === 0 && !found.isWaited && !found.hasBulk;
    } while (found.again && !this.#isStopped);
    if (!isQuiet || isBusy()) return spread(reapMs);
    // A little after the lease or deadline, and not all workers at once.
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

  /** Works on bulk operations while there are any. Answers whether there were. */
  async #workBulk(): Promise<boolean> {
    const { store, events, onClaimable } = this.#options;
    for (let isFound = false; ; isFound = true) {
      const { again, woke, batch: worked } = await store.workBulk(bulkBatch);
      if (woke) onClaimable(null);
      if (worked !== null) events?.emit("bulk.worked", worked);
      if (!again || this.#isStopped) return isFound;
    }
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
      this.#options.logger.warn({ err: error }, "pawl: a sweep failed, trying again in the next round");
    }
  }
}

/** With jitter, so that many workers spread out. */
function spread(everyMs: number): number {
  return everyMs * (0.8 + Math.random() * 0.4);
}
