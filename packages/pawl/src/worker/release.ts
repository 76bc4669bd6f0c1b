/**
 * Releases claims without an outcome: of runs that were not begun, that were cancelled, that nobody
 * executes, or whose worker stops. A release that the database has not confirmed (an outage, a
 * locked row) is repeated with backoff until the database has released the claim or says that it is
 * not held: the claim id guards it. Owned by the worker.
 */

import type { Logger } from "../values/logger.js";
import type { WorkerStore } from "../store/store.js";
import { giveUpAfter } from "../timing/deadline.js";
import { RetryDelay } from "../timing/retry-delay.js";

const longestMs = 2_000;
const maxBatch = 500;

export interface HeldClaim {
  readonly runId: string;
  readonly claimId: string;
}

interface Pending extends HeldClaim {
  /** A try is in flight. */
  isUnderWay: boolean;
  readonly confirmed: Promise<void>;
  readonly confirm: () => void;
}

const keyOf = ({ runId, claimId }: HeldClaim): string => `${runId} ${claimId}`;

export class Releaser {
  readonly #store: Pick<WorkerStore, "release" | "held">;
  readonly #logger: Logger;
  /** The runs, or the next ones of their partition keys, are claimable. */
  readonly #onReleased: () => void;
  readonly #pending = new Map<string, Pending>();
  readonly #retryDelay = new RetryDelay();
  #retry: NodeJS.Timeout | undefined;
  #hasFailed = false;
  #isStopped = false;

  constructor(store: Pick<WorkerStore, "release" | "held">, logger: Logger, onReleased: () => void) {
    this.#store = store;
    this.#logger = logger;
    this.#onReleased = onReleased;
  }

  /** Releases claims, after a delay if given, and does not wait for it. */
  release(claims: readonly HeldClaim[], afterMs = 0): void {
    const added = this.#add(claims);
    if (afterMs === 0) void this.#send(added);
    else setTimeout(() => void this.#send(added), afterMs).unref();
  }

  /** Releases claims and waits until that is confirmed, for two seconds at most. */
  async releaseAndWait(claims: readonly HeldClaim[]): Promise<void> {
    void this.#send(this.#add(claims));
    const pending = claims.flatMap((claim) => this.#pending.get(keyOf(claim)) ?? []);
    await giveUpAfter(longestMs, Promise.all(pending.map(({ confirmed }) => confirmed)));
  }

  /** Repeats no release: the worker has unregistered, or is gone. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#retry);
  }

  #add(claims: readonly HeldClaim[]): Pending[] {
    if (this.#isStopped) return [];
    const added: Pending[] = [];
    for (const { runId, claimId } of claims) {
      const key = keyOf({ runId, claimId });
      if (this.#pending.has(key)) continue;
      let confirm = (): void => {};
      const confirmed = new Promise<void>((resolve) => (confirm = resolve));
      const one = { runId, claimId, isUnderWay: true, confirmed, confirm };
      this.#pending.set(key, one);
      added.push(one);
    }
    return added;
  }

  async #send(pending: readonly Pending[]): Promise<void> {
    for (let from = 0; from < pending.length && !this.#isStopped; from += maxBatch) {
      const batch = pending.slice(from, from + maxBatch);
      try {
        const released = new Set(await this.#store.release(batch));
        const others = batch.filter(({ runId }) => !released.has(runId));
        // Claims that are still held are locked by somebody; the others have ended otherwise.
        const held = new Set(others.length === 0 ? [] : await this.#store.held(others));
        for (const one of batch) if (!held.has(one.runId)) this.#settle(one);
        if (released.size > 0) this.#onReleased();
        if (held.size === 0) this.#retryDelay.reset();
        this.#hasFailed = false;
      } catch (error) {
        if (!this.#hasFailed) {
          const details = { err: error, runs: batch.length };
          this.#logger.warn(details, "pawl: claims could not be released, trying again until they are");
        }
        this.#hasFailed = true;
      }
    }
    for (const one of pending) one.isUnderWay = false;
    this.#schedule();
  }

  #settle(one: Pending): void {
    this.#pending.delete(keyOf(one));
    one.confirm();
  }

  /** Repeats all releases that are not confirmed, after a delay, in one call. */
  #schedule(): void {
    if (this.#isStopped || this.#retry !== undefined) return;
    if (![...this.#pending.values()].some(({ isUnderWay }) => !isUnderWay)) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      const left = [...this.#pending.values()].filter(({ isUnderWay }) => !isUnderWay);
      for (const one of left) one.isUnderWay = true;
      void this.#send(left);
    }, this.#retryDelay.next());
  }
}
