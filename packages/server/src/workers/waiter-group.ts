/**
 * Workers that wait for runs of one queue and serve the same definitions. They wait in line, and the
 * group sends one claim at a time, for the first of them: when work was announced, when a run falls
 * due, or after the poll interval, which grows while the queue is empty. A worker that gets runs
 * leaves the line; if there are more runs, the group claims for the next worker at once. The group
 * releases runs that it claimed for a worker that has disconnected. An outage only delays. Kept by
 * `waiters.ts`.
 */

import type { Claimable, Claimed, PostgresStore } from "pawl/engine";
import { ClaimCursor, databaseErrors, type Polled, PollLoop } from "pawl/engine";
import type { Logger } from "pawl";

const pace = { shortestMs: 5, longestMs: 1_000 };
/**
 * A worker that waits this long may have lost its lease and get nothing: then also claim for the
 * second.
 */
const staleMs = 1_000;

/** The claim that a worker asks for. */
export interface Ask {
  readonly workerId: string;
  /** The name of its token; null: none. */
  readonly owner: string | null;
  readonly claimId: string;
  readonly queue: string;
  readonly limit: number;
  readonly names: readonly string[];
  readonly versions: readonly number[];
}

export type Found = Pick<Claimed, "runs" | "more">;

export interface Waiter {
  readonly ask: Ask;
  readonly sinceMs: number;
  /** Gives the answer, once. */
  readonly answer: (found: Found | Error) => void;
  /** Its time has passed: answer now, or with the runs of a claim in flight. */
  isDue: boolean;
  /** It has disconnected. */
  isGone: boolean;
}

export interface GroupHost {
  readonly store: {
    claim(request: Parameters<PostgresStore["claim"]>[0] & Pick<Ask, "owner">): Promise<Claimed>;
  };
  readonly logger: Logger;
  /** Releases claims that no worker will execute. */
  release(queue: string, runs: Found["runs"], claimId: string): void;
  /** The line has become empty. */
  onEmpty(): void;
}

export const nothing: Found = { runs: [], more: false };
const claimAgain: Claimed = { ...nothing, more: true, floor: null, busy: null, dueMs: null, throttled: 0 };

export class WaiterGroup {
  readonly #host: GroupHost;
  readonly #line = new Set<Waiter>();
  readonly #cursor: ClaimCursor;
  readonly #loop = new PollLoop(pace, () => this.#poll());
  /** The worker for whom a claim is in flight. */
  #claiming: Waiter | null = null;

  constructor(host: GroupHost, served: Pick<Ask, "names" | "versions">) {
    this.#host = host;
    this.#cursor = new ClaimCursor(served);
  }

  get isEmpty(): boolean {
    return this.#line.size === 0;
  }

  join(waiter: Waiter): void {
    this.#line.add(waiter);
    // While others wait, there is nothing to claim as far as the group knows: no hint.
    this.#loop.start();
  }

  /** Answers a worker that is due or gone with nothing, unless a claim for it is in flight. */
  settle(waiter: Waiter): void {
    if (waiter === this.#claiming || !this.#line.delete(waiter)) return;
    waiter.answer(nothing);
    this.#stopIfEmpty();
  }

  /** Answers the workers that `is` selects. */
  end(is: (waiter: Waiter) => boolean): void {
    for (const waiter of this.#line) {
      if (!is(waiter)) continue;
      waiter.isDue = true;
      this.settle(waiter);
    }
  }

  hint(): void {
    this.#loop.hint();
  }

  rewind(): void {
    this.#cursor.rewind();
    this.hint();
  }

  lower(claimable: Claimable): void {
    this.#cursor.lower(claimable);
    this.hint();
  }

  expect(delayMs: number): void {
    this.#loop.expectAt(performance.now() + delayMs);
  }

  /** Stops the loop while the line is empty; `join` starts it again. */
  #stopIfEmpty(): void {
    if (!this.isEmpty) return;
    void this.#loop.stop();
    this.#host.onEmpty();
  }

  async #poll(): Promise<Polled> {
    const askedMs = performance.now();
    const claimed = await this.#claimForFirst();
    this.#stopIfEmpty();
    if (claimed === null) return { kind: "failed" };
    if (claimed.more) return { kind: "again" };
    const { runs, dueMs } = claimed;
    return {
      kind: "drained",
      found: runs.length > 0,
      dueAtMs: dueMs === null ? null : askedMs + dueMs,
      // A claim over a part of the queue does not replace one over all of it.
      atMostMs: this.#cursor.restMs(),
    };
  }

  /** Claims for the first in line and, if that one may have lost its lease, for the second. */
  async #claimForFirst(): Promise<Claimed | null> {
    const [first, second] = this.#line;
    if (first === undefined) return null;
    const claimed = await this.#claim(first);
    const isFound = claimed === null || claimed.runs.length > 0;
    if (isFound || second === undefined || !this.#line.has(second)) return claimed;
    return performance.now() - first.sinceMs < staleMs ? claimed : this.#claim(second);
  }

  /** One claim for this worker; null: it failed. */
  async #claim(waiter: Waiter): Promise<Claimed | null> {
    const { store, logger } = this.#host;
    const from = this.#cursor.begin();
    // A claim over a part of the queue does not know every due time.
    if (from.isWhole) this.#loop.forgetDue();
    this.#claiming = waiter;
    try {
      const claimed = await store.claim({ ...waiter.ask, ...from });
      this.#cursor.accept(claimed);
      this.#give(waiter, claimed);
      return claimed;
    } catch (error) {
      if (databaseErrors.isOutage(error)) {
        logger.warn({ err: error, queue: waiter.ask.queue }, "pawl: claim failed, retrying");
        if (waiter.isDue || waiter.isGone) this.#give(waiter, nothing);
        return null;
      }
      // The error concerns this caller only: the next in line does not wait.
      if (this.#line.delete(waiter)) waiter.answer(error as Error);
      return claimAgain;
    } finally {
      this.#claiming = null;
    }
  }

  #give(waiter: Waiter, { runs, more }: Found): void {
    const { ask, isDue, isGone } = waiter;
    if (runs.length === 0 && !isDue && !isGone) return;
    this.#line.delete(waiter);
    if (isGone) this.#host.release(ask.queue, runs, ask.claimId);
    waiter.answer(isGone ? nothing : { runs, more });
  }
}
