/**
 * Waits for runs to end. The hub (`local/hub.ts`) announces a run that ends in this process at
 * once. Polling finds the others: each run at intervals that grow, however many callers wait for
 * it. One call asks for up to 1,000 runs, the longest due first, so no number of waits delays
 * another beyond its turn. An outage only delays. Used by the Postgres transport and by the server.
 */

import type { ClientStore, EndedRun } from "../store/client-store.js";
import { isUnreachable } from "../store/errors.js";
import { longerInterval, noInterval, type Polled, PollLoop } from "../timing/poll.js";
import type { Logger } from "../values/logger.js";
import type { Hub } from "./hub.js";

/** How often one run is asked for. */
const pace = { shortestMs: 10, longestMs: 500 };
const maxBatch = 1_000;
/** With more runs than this, some run is always due: they are polled together, after a rest. */
const crowd = 100;
const crowdRestMs = 20;
/**
 * A caller that waits no longer than this is answered by a call of its own: a poll might come too
 * late.
 */
const shortMs = 100;
/** The longest delay of a timer, 24 days. */
const longestTimerMs = 2_147_483_647;

type Settle = (ended: EndedRun | Error) => void;

/** A run that somebody waits for. */
interface Awaited {
  readonly runId: string;
  readonly settles: Set<Settle>;
  /** Ends the subscription to the hub's announcement. */
  readonly unsubscribe: () => void;
  intervalMs: number;
  dueAtMs: number;
}

export class Results {
  readonly #store: Pick<ClientStore, "ended">;
  readonly #hub: Hub;
  readonly #logger: Logger;
  readonly #awaited = new Map<string, Awaited>();
  readonly #loop = new PollLoop(noInterval, () => this.#poll());

  constructor(store: Pick<ClientStore, "ended">, hub: Hub, logger: Logger) {
    this.#logger = logger;
    this.#store = store;
    this.#hub = hub;
  }

  /** The end of a run; null once `timeoutMs` has passed or the signal is aborted. */
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
        timeout = setTimeout(giveUp, Math.min(timeoutMs, longestTimerMs));
      }
    });
  }

  /** Fails all calls that still wait. */
  close(reason: Error): void {
    void this.#loop.stop();
    for (const awaited of this.#awaited.values()) settleAll(awaited, reason);
  }

  #join(runId: string, settle: Settle): void {
    const dueAtMs = performance.now() + pace.shortestMs;
    let awaited = this.#awaited.get(runId);
    if (awaited === undefined) {
      const made: Awaited = {
        runId,
        settles: new Set(),
        unsubscribe: this.#hub.onEnd(runId, (ended) => settleAll(made, ended)),
        intervalMs: pace.shortestMs,
        dueAtMs,
      };
      this.#awaited.set(runId, (awaited = made));
    }
    // A new caller does not wait for the long interval of those who came before.
    awaited.intervalMs = pace.shortestMs;
    awaited.dueAtMs = Math.min(awaited.dueAtMs, dueAtMs);
    awaited.settles.add(settle);
    this.#loop.expectAt(awaited.dueAtMs);
    this.#loop.start();
  }

  #leave(runId: string, settle: Settle): void {
    const awaited = this.#awaited.get(runId);
    if (awaited === undefined) return;
    awaited.settles.delete(settle);
    if (awaited.settles.size > 0) return;
    this.#awaited.delete(runId);
    awaited.unsubscribe();
  }

  async #poll(): Promise<Polled> {
    const nowMs = performance.now();
    const due = [...this.#awaited.values()]
      .filter((awaited) => awaited.dueAtMs <= nowMs + 1)
      .toSorted((one, other) => one.dueAtMs - other.dueAtMs)
      .slice(0, maxBatch);
    const isWhole = due.length === 0 || (await this.#ask(due));
    // If the answer was cut, the rest comes first in the next one.
    if (isWhole) {
      for (const awaited of due) {
        awaited.intervalMs = longerInterval(awaited.intervalMs, pace);
        awaited.dueAtMs = performance.now() + awaited.intervalMs;
      }
    }
    if (this.#awaited.size > crowd) return { kind: "pause", ms: crowdRestMs };
    let dueAtMs = Number.POSITIVE_INFINITY;
    for (const awaited of this.#awaited.values()) dueAtMs = Math.min(dueAtMs, awaited.dueAtMs);
    return { kind: "drained", found: false, dueAtMs };
  }

  /** Whether the answer covered all of them. */
  async #ask(due: readonly Awaited[]): Promise<boolean> {
    try {
      const { runs, more } = await this.#store.ended(due.map(({ runId }) => runId));
      const byId = new Map(due.map((awaited) => [awaited.runId, awaited]));
      for (const run of runs) settleAll(byId.get(run.runId)!, run);
      return !more;
    } catch (error) {
      if (isUnreachable(error)) this.#logger.warn({ err: error }, "pawl: cannot read results, will retry");
      else for (const awaited of due) settleAll(awaited, error as Error);
      return true;
    }
  }
}

/** Answers everybody who waits for the run. */
function settleAll({ settles }: Awaited, ended: EndedRun | Error): void {
  for (const settle of settles) settle(ended);
}
