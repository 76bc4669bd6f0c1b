/**
 * Workers that wait for runs of one queue and serve the same definitions: they stand in line, and one look at the database at a time is
 * made for all of them, in the name of the first. It is made when work was announced, a run falls due, or the poll interval passes,
 * which grows while the queue stays empty. Who gets runs leaves the line; if that look found more than he asked for, the next one
 * looks at once. What was claimed for somebody who has gone meanwhile is let go. An outage only makes them wait. Kept by `waiters.ts`.
 */

import type { Claimable, Claimed, PostgresStore } from "pawl/engine";
import { ClaimCursor, isOutage, type Polled, PollLoop } from "pawl/engine";
import type { Logger } from "pawl";

const pace = { shortestMs: 5, longestMs: 1_000 };
/** Whoever has waited this long may have lost his lease, and then is given nothing: the next in line may look too. */
const staleMs = 1_000;

/** What a worker asks for. */
export interface Ask {
  readonly workerId: string;
  /** The name of the token that it asks with; null: none. */
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
  /** The time is over: the answer is due, with whatever a look in flight finds. */
  isDue: boolean;
  /** Nobody is there any more to get an answer. */
  isGone: boolean;
}

export interface GroupHost {
  readonly store: {
    claim(request: Parameters<PostgresStore["claim"]>[0] & Pick<Ask, "owner">): Promise<Claimed>;
  };
  readonly logger: Logger;
  /** Lets claims go that nobody will execute. */
  letGo(queue: string, runs: Found["runs"], claimId: string): void;
  /** Nobody waits any more. */
  onEmpty(): void;
}

export const nothing: Found = { runs: [], more: false };
const lookAgain: Claimed = { ...nothing, more: true, floor: null, busy: null, dueMs: null, throttled: 0 };

export class WaiterGroup {
  readonly #host: GroupHost;
  readonly #line = new Set<Waiter>();
  readonly #cursor: ClaimCursor;
  readonly #loop = new PollLoop(pace, () => this.#poll());
  /** For whom a look is in flight. */
  #looking: Waiter | null = null;

  constructor(host: GroupHost, served: Pick<Ask, "names" | "versions">) {
    this.#host = host;
    this.#cursor = new ClaimCursor(served);
  }

  get isEmpty(): boolean {
    return this.#line.size === 0;
  }

  join(waiter: Waiter): void {
    this.#line.add(waiter);
    // While others wait there is nothing to claim, as far as is known: a running loop is not hinted.
    this.#loop.start();
  }

  /** This waiter is due, or gone: his answer is nothing, unless a look for him is in flight. */
  settle(waiter: Waiter): void {
    if (waiter === this.#looking || !this.#line.delete(waiter)) return;
    waiter.answer(nothing);
    this.#stopIfEmpty();
  }

  /** Answers all of them that `is` is true of. */
  end(is: (waiter: Waiter) => boolean): void {
    for (const waiter of this.#line) {
      if (!is(waiter)) continue;
      waiter.isDue = true;
      this.settle(waiter);
    }
  }

  nudge(): void {
    this.#loop.hint();
  }

  rewind(): void {
    this.#cursor.rewind();
    this.nudge();
  }

  lower(claimable: Claimable): void {
    this.#cursor.lower(claimable);
    this.nudge();
  }

  expect(delayMs: number): void {
    this.#loop.expectAt(performance.now() + delayMs);
  }

  /** Nobody waits: the loop ends until somebody joins. */
  #stopIfEmpty(): void {
    if (!this.isEmpty) return;
    void this.#loop.stop();
    this.#host.onEmpty();
  }

  async #poll(): Promise<Polled> {
    const askedMs = performance.now();
    const claimed = await this.#lookForFirst();
    this.#stopIfEmpty();
    if (claimed === null) return { kind: "failed" };
    if (claimed.more) return { kind: "again" };
    const { runs, dueMs } = claimed;
    return {
      kind: "drained",
      found: runs.length > 0,
      dueAtMs: dueMs === null ? null : askedMs + dueMs,
      // A claim that looked at a part of the queue does not replace one that looks at all of it.
      atMostMs: this.#cursor.restMs(),
    };
  }

  /** A look in the name of the first in line; if he may be somebody who is given nothing, also in that of the second. */
  async #lookForFirst(): Promise<Claimed | null> {
    const [first, second] = this.#line;
    if (first === undefined) return null;
    const claimed = await this.#look(first);
    const isFound = claimed === null || claimed.runs.length > 0;
    if (isFound || second === undefined || !this.#line.has(second)) return claimed;
    return performance.now() - first.sinceMs < staleMs ? claimed : this.#look(second);
  }

  /** Null: it failed. */
  async #look(waiter: Waiter): Promise<Claimed | null> {
    const { store, logger } = this.#host;
    const from = this.#cursor.begin();
    // A look at a part of the queue need not know of every due time.
    if (from.isWhole) this.#loop.forgetDue();
    this.#looking = waiter;
    try {
      const claimed = await store.claim({ ...waiter.ask, ...from });
      this.#cursor.accept(claimed);
      this.#give(waiter, claimed);
      return claimed;
    } catch (error) {
      if (isOutage(error)) {
        logger.warn({ err: error, queue: waiter.ask.queue }, "pawl: claim failed, trying again");
        if (waiter.isDue || waiter.isGone) this.#give(waiter, nothing);
        return null;
      }
      // The fault of this caller alone: the next in line does not wait for it.
      if (this.#line.delete(waiter)) waiter.answer(error as Error);
      return lookAgain;
    } finally {
      this.#looking = null;
    }
  }

  #give(waiter: Waiter, { runs, more }: Found): void {
    const { ask, isDue, isGone } = waiter;
    if (runs.length === 0 && !isDue && !isGone) return;
    this.#line.delete(waiter);
    if (isGone) this.#host.letGo(ask.queue, runs, ask.claimId);
    waiter.answer(isGone ? nothing : { runs, more });
  }
}
