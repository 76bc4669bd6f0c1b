/**
 * Workers that wait for runs of one queue and serve the same definitions: they stand in line, and one look at the database at a time is
 * made for all of them, in the name of the first. It is made when work was announced, a run falls due, or the poll interval passes,
 * which grows while the queue stays empty. Who gets runs leaves the line; if that look found more than he asked for, the next one
 * looks at once. What was claimed for somebody who has gone meanwhile is let go. An outage only makes them wait. Kept by `waiters.ts`.
 */

import type { Claimable, Claimed, PostgresStore } from "pawl/engine";
import { isOutage, LowWater, Patience } from "pawl/engine";
import type { Logger } from "pawl";

const pollMs = { shortest: 5, longest: 1_000 };
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
  readonly #lowWater: LowWater;
  readonly #patience = new Patience();
  /** For whom a look is in flight. */
  #looking: Waiter | null = null;
  #isRunning = false;
  #isNudged = false;
  #dueAtMs = Number.POSITIVE_INFINITY;
  #pollMs = pollMs.shortest;
  #wake: (() => void) | null = null;

  constructor(host: GroupHost, served: Pick<Ask, "names" | "versions">) {
    this.#host = host;
    this.#lowWater = new LowWater(served);
  }

  get isEmpty(): boolean {
    return this.#line.size === 0;
  }

  join(waiter: Waiter): void {
    this.#line.add(waiter);
    // While others wait there is nothing to claim, as far as is known.
    if (!this.#isRunning) void this.#run();
  }

  /** This waiter is due, or gone: his answer is nothing, unless a look for him is in flight. */
  settle(waiter: Waiter): void {
    if (waiter === this.#looking || !this.#line.delete(waiter)) return;
    waiter.answer(nothing);
    if (this.isEmpty) this.#wake?.();
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
    this.#isNudged = true;
    this.#wake?.();
  }

  rewind(): void {
    this.#lowWater.rewind();
    this.nudge();
  }

  lower(claimable: Claimable): void {
    this.#lowWater.lower(claimable);
    this.nudge();
  }

  expect(delayMs: number): void {
    const atMs = performance.now() + delayMs;
    if (atMs >= this.#dueAtMs) return;
    this.#dueAtMs = atMs;
    this.#wake?.();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (!this.isEmpty) {
      this.#isNudged = false;
      const askedMs = performance.now();
      const claimed = await this.#lookForFirst();
      if (claimed === null) await this.#sleep(this.#patience.next());
      else if (!claimed.more) await this.#idle(claimed, askedMs);
    }
    this.#isRunning = false;
    this.#host.onEmpty();
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
    const from = this.#lowWater.look();
    // Another look need not know of every run that will be due.
    if (from.isWhole || this.#dueAtMs <= performance.now()) this.#dueAtMs = Number.POSITIVE_INFINITY;
    this.#looking = waiter;
    try {
      const claimed = await store.claim({ ...waiter.ask, ...from });
      this.#patience.reset();
      this.#lowWater.accept(claimed);
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

  /** Nothing is left to claim: wait for a nudge, the next due time, or the poll interval. */
  async #idle({ runs, dueMs }: Claimed, askedMs: number): Promise<void> {
    if (dueMs !== null) this.#dueAtMs = Math.min(this.#dueAtMs, askedMs + dueMs);
    const waitMs = this.#pollMs * (0.85 + Math.random() * 0.3);
    this.#pollMs = runs.length > 0 ? pollMs.shortest : Math.min(this.#pollMs * 1.5, pollMs.longest);
    // A bounded look is no substitute for the next at the whole queue.
    await this.#sleep(Math.min(waitMs, this.#lowWater.restMs() ?? waitMs));
  }

  async #sleep(longestMs: number): Promise<void> {
    const endMs = performance.now() + longestMs;
    while (!this.isEmpty && !this.#isNudged) {
      const leftMs = Math.min(endMs, this.#dueAtMs) - performance.now();
      if (leftMs <= 0) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.ceil(leftMs));
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = null;
    }
  }
}
