/**
 * Waits for runs to end. A run that ends in this process is announced at once (`nudge.ts`); all others are found by
 * polling, one call for all that wait, each run at intervals that grow. An outage only delays. Used by the client.
 */

import { isOutage } from "./store/postgres/database-errors.js";
import type { ClientStore, EndedRun } from "./store/store.js";
import type { Hub } from "./engine/nudge.js";
import type { Logger } from "./define/logger.js";

const firstPollMs = 10;
const longestPollMs = 500;
const maxBatch = 1_000;
const many = 100;
const crowdRestMs = 20;
/** Who waits no longer than this gets a look at once: polling might come too late. */
const shortMs = 100;

interface Waiter {
  readonly runId: string;
  readonly settle: (ended: EndedRun | Error) => void;
  intervalMs: number;
  dueAtMs: number;
}

export class Results {
  readonly #store: ClientStore;
  readonly #hub: Hub;
  readonly #logger: Logger;
  readonly #waiters = new Set<Waiter>();
  #timer: NodeJS.Timeout | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #isPolling = false;

  constructor(store: ClientStore, hub: Hub, logger: Logger) {
    this.#logger = logger;
    this.#store = store;
    this.#hub = hub;
  }

  /** The end of a run; null once `timeoutMs` has passed without it, or who waits has gone (`signal`). */
  async wait(runId: string, timeoutMs: number | null, signal?: AbortSignal): Promise<EndedRun | null> {
    if (timeoutMs !== null && timeoutMs <= shortMs) {
      const [ended] = await this.#store.ended([runId]);
      if (ended !== undefined) return ended;
    }
    return signal?.aborted ? null : this.#wait(runId, timeoutMs, signal);
  }

  #wait(runId: string, timeoutMs: number | null, signal: AbortSignal | undefined): Promise<EndedRun | null> {
    return new Promise((resolve, reject) => {
      let timeout: NodeJS.Timeout | undefined;
      const finish = (): void => {
        clearTimeout(timeout);
        this.#waiters.delete(waiter);
        signal?.removeEventListener("abort", giveUp);
        forget();
      };
      const giveUp = (): void => {
        finish();
        resolve(null);
      };
      const waiter: Waiter = {
        runId,
        intervalMs: firstPollMs,
        dueAtMs: performance.now() + firstPollMs,
        settle: (ended) => {
          finish();
          if (ended instanceof Error) reject(ended);
          else resolve(ended);
        },
      };
      const forget = this.#hub.await(runId, waiter.settle);
      this.#waiters.add(waiter);
      this.#scheduleAt(waiter.dueAtMs);
      signal?.addEventListener("abort", giveUp);
      if (timeoutMs !== null) {
        timeout = setTimeout(
          giveUp,
          // The longest that a timer takes; nobody waits 24 days for more.
          Math.min(timeoutMs, 2 ** 31 - 1),
        );
      }
    });
  }

  /** Gives up on everything that still waits. */
  close(reason: Error): void {
    clearTimeout(this.#timer);
    for (const waiter of this.#waiters) waiter.settle(reason);
  }

  /** Polls at this time, unless it will sooner. */
  #scheduleAt(atMs: number): void {
    if (this.#isPolling || atMs >= this.#timerAtMs) return;
    clearTimeout(this.#timer);
    this.#timerAtMs = atMs;
    this.#timer = setTimeout(() => void this.#poll(), Math.max(0, atMs - performance.now()));
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    const nowMs = performance.now();
    const due = [...this.#waiters].filter((waiter) => waiter.dueAtMs <= nowMs + 1).slice(0, maxBatch);
    try {
      if (due.length > 0) {
        const ended = await this.#store.ended([...new Set(due.map((waiter) => waiter.runId))]);
        const byId = new Map(ended.map((run) => [run.runId, run]));
        for (const waiter of due) {
          const run = byId.get(waiter.runId);
          if (run !== undefined) waiter.settle(run);
        }
      }
    } catch (error) {
      if (isOutage(error)) this.#logger.warn({ err: error }, "pawl: results cannot be read, trying again");
      else for (const waiter of due) waiter.settle(error as Error);
    }
    for (const waiter of due) {
      waiter.intervalMs = Math.min(waiter.intervalMs * 1.5, longestPollMs);
      waiter.dueAtMs = performance.now() + waiter.intervalMs;
    }
    this.#isPolling = false;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    let nextAtMs = Number.POSITIVE_INFINITY;
    for (const waiter of this.#waiters) nextAtMs = Math.min(nextAtMs, waiter.dueAtMs);
    // Of many there is always one due: they are looked after together.
    const restMs = this.#waiters.size > many ? crowdRestMs : 0;
    this.#scheduleAt(Math.max(nextAtMs, performance.now() + restMs));
  }
}
