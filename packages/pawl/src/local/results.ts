/**
 * Waits for runs to end. A run that ends in this process is announced at once (`local/hub.ts`); all others are found by polling, each run at
 * intervals that grow, however many wait for it. One call asks for up to 1,000 runs, those first that have been due the longest: no
 * number of waits keeps another from its turn. An outage only delays. Used by the client and by the server.
 */

import { isOutage } from "../store/postgres/database-errors.js";
import type { ClientStore, EndedRun } from "../store/store.js";
import type { Hub } from "./hub.js";
import type { Logger } from "../values/logger.js";

const firstPollMs = 10;
const longestPollMs = 500;
const maxBatch = 1_000;
const many = 100;
const crowdRestMs = 20;
/** Who waits no longer than this gets a look at once: polling might come too late. */
const shortMs = 100;

type Settle = (ended: EndedRun | Error) => void;

/** A run that somebody waits for. */
interface Awaited {
  readonly runId: string;
  readonly settles: Set<Settle>;
  /** Takes back that this process announces its end. */
  readonly forget: () => void;
  intervalMs: number;
  dueAtMs: number;
}

export class Results {
  readonly #store: Pick<ClientStore, "ended">;
  readonly #hub: Hub;
  readonly #logger: Logger;
  readonly #awaited = new Map<string, Awaited>();
  #timer: NodeJS.Timeout | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #isPolling = false;

  constructor(store: Pick<ClientStore, "ended">, hub: Hub, logger: Logger) {
    this.#logger = logger;
    this.#store = store;
    this.#hub = hub;
  }

  /** The end of a run; null once `timeoutMs` has passed without it, or who waits has gone (`signal`). */
  async wait(runId: string, timeoutMs: number | null, signal?: AbortSignal): Promise<EndedRun | null> {
    if (timeoutMs !== null && timeoutMs <= shortMs) {
      const [ended] = (await this.#store.ended([runId])).runs;
      if (ended !== undefined) return ended;
    }
    return signal?.aborted ? null : this.#wait(runId, timeoutMs, signal);
  }

  #wait(runId: string, timeoutMs: number | null, signal: AbortSignal | undefined): Promise<EndedRun | null> {
    return new Promise((resolve, reject) => {
      let timeout: NodeJS.Timeout | undefined;
      const finish = (): void => {
        clearTimeout(timeout);
        this.#leave(runId, settle);
        signal?.removeEventListener("abort", giveUp);
      };
      const giveUp = (): void => {
        finish();
        resolve(null);
      };
      const settle: Settle = (ended) => {
        finish();
        if (ended instanceof Error) reject(ended);
        else resolve(ended);
      };
      this.#join(runId, settle);
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
    for (const awaited of this.#awaited.values()) tellAll(awaited, reason);
  }

  #join(runId: string, tell: Settle): void {
    const dueAtMs = performance.now() + firstPollMs;
    let awaited = this.#awaited.get(runId);
    if (awaited === undefined) {
      const made: Awaited = {
        runId,
        settles: new Set(),
        forget: this.#hub.await(runId, (ended) => tellAll(made, ended)),
        intervalMs: firstPollMs,
        dueAtMs,
      };
      this.#awaited.set(runId, (awaited = made));
    }
    // Whoever comes anew is not to wait as long as those who have waited for long.
    awaited.intervalMs = firstPollMs;
    awaited.dueAtMs = Math.min(awaited.dueAtMs, dueAtMs);
    awaited.settles.add(tell);
    this.#scheduleAt(awaited.dueAtMs);
  }

  #leave(runId: string, tell: Settle): void {
    const awaited = this.#awaited.get(runId);
    if (awaited === undefined) return;
    awaited.settles.delete(tell);
    if (awaited.settles.size > 0) return;
    this.#awaited.delete(runId);
    awaited.forget();
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
    const due = [...this.#awaited.values()]
      .filter((awaited) => awaited.dueAtMs <= nowMs + 1)
      .toSorted((one, other) => one.dueAtMs - other.dueAtMs)
      .slice(0, maxBatch);
    const isWhole = due.length === 0 || (await this.#ask(due));
    // What did not fit into the answer comes first in the next.
    if (isWhole) {
      for (const awaited of due) {
        awaited.intervalMs = Math.min(awaited.intervalMs * 1.5, longestPollMs);
        awaited.dueAtMs = performance.now() + awaited.intervalMs;
      }
    }
    this.#isPolling = false;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    let nextAtMs = Number.POSITIVE_INFINITY;
    for (const awaited of this.#awaited.values()) nextAtMs = Math.min(nextAtMs, awaited.dueAtMs);
    // Of many there is always one due: they are looked after together.
    const restMs = this.#awaited.size > many ? crowdRestMs : 0;
    this.#scheduleAt(Math.max(nextAtMs, performance.now() + restMs));
  }

  /** Whether the answer told of all of them. */
  async #ask(due: readonly Awaited[]): Promise<boolean> {
    try {
      const { runs, more } = await this.#store.ended(due.map(({ runId }) => runId));
      const byId = new Map(due.map((awaited) => [awaited.runId, awaited]));
      for (const run of runs) tellAll(byId.get(run.runId)!, run);
      return !more;
    } catch (error) {
      if (isOutage(error)) this.#logger.warn({ err: error }, "pawl: results cannot be read, trying again");
      else for (const awaited of due) tellAll(awaited, error as Error);
      return true;
    }
  }
}

/** Tells everybody who waits for it. */
function tellAll({ settles }: Awaited, ended: EndedRun | Error): void {
  for (const tell of settles) tell(ended);
}
