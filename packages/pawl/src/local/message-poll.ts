/**
 * The look of everybody in this process who wants the same messages: one call at a time for all of them, repeated as long as somebody
 * waits. Remembers where the calls stopped, so that messages that cannot be received, or are gone, are not walked over again and
 * again. Used by the receiver.
 */

import type { Received, ReceiveRequest, Wanted } from "../store/queue-store.js";
import type { Hub } from "./hub.js";
import type { ReceivedMessage } from "./receiver.js";

/** The most messages that one call receives for all who wait. */
const maxBatch = 500;
const firstPollMs = 20;
const longestPollMs = 1_000;
/** The low-water mark hides what becomes visible late, but not for longer. */
const floorMs = 1_000;
/** Calls in a row that find only messages which cannot be received: then a pause, and who does not wait is answered. */
const maxWalks = 10;

interface Waiter {
  readonly max: number;
  readonly settle: (messages: ReceivedMessage[] | Error) => void;
  /** The number of the first look that counts for it. */
  readonly since: number;
  /** Its time is over: it is answered after the look in flight. */
  isOver: boolean;
}

export interface LookOptions {
  readonly hub: Hub;
  receive(
    request: Pick<ReceiveRequest, "limit" | "floor" | "after">,
  ): Promise<Omit<Received, "messages"> & { messages: ReceivedMessage[] }>;
  giveBack(messages: readonly ReceivedMessage[]): Promise<void>;
  expire(): Promise<void>;
}

export class Look {
  readonly #wanted: Wanted;
  readonly #options: LookOptions;
  readonly #waiters = new Set<Waiter>();
  #number = 0;
  #running: Promise<void> | undefined;
  #isHinted = false;
  #floor: number | null = null;
  #floorUntilMs = 0;
  #after: Received["after"] = null;
  #pollMs = firstPollMs;
  #wake: (() => void) | undefined;

  constructor(wanted: Wanted, options: LookOptions) {
    this.#wanted = wanted;
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#waiters.size === 0 && this.#running === undefined;
  }

  wait(max: number, waitMs: number, signal: AbortSignal | undefined): Promise<ReceivedMessage[]> {
    return new Promise((resolve, reject) => {
      const isOver = (): void => {
        waiter.isOver = true;
        this.#wake?.();
      };
      const timer = waitMs > 0 ? setTimeout(isOver, waitMs) : undefined;
      const leave = (): void => waiter.settle([]);
      const waiter: Waiter = {
        max,
        since: this.#number + 1,
        isOver: waitMs === 0,
        settle: (messages) => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", leave);
          this.#waiters.delete(waiter);
          if (messages instanceof Error) reject(messages);
          else resolve(messages);
        },
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiters.add(waiter);
      if (this.#running === undefined) this.#running = this.#run();
      else this.#hint(false);
    });
  }

  /** Resolves when no call is in flight. */
  async close(reason: Error): Promise<void> {
    for (const waiter of this.#waiters) waiter.settle(reason);
    this.#wake?.();
    await this.#running;
  }

  /** Something has become visible, or somebody wants it. */
  #hint(isOld: boolean): void {
    if (isOld) this.#floor = null;
    this.#isHinted = true;
    this.#wake?.();
  }

  async #run(): Promise<void> {
    const forget = this.#options.hub.receiving(this.#wanted.queue, (isOld) => this.#hint(isOld));
    let walks = 0;
    try {
      while (this.#waiters.size > 0) {
        this.#isHinted = false;
        const number = ++this.#number;
        const found = await this.#look();
        const isThrough = found.after === null || ++walks >= maxWalks;
        if (isThrough) walks = 0;
        for (const waiter of this.#waiters) {
          if (waiter.isOver && waiter.since <= number && isThrough) waiter.settle([]);
        }
        if (this.#waiters.size === 0 || found.more || !isThrough) continue;
        if (found.messages.length === 0) await this.#options.expire();
        // A walk that is not at its end goes on after a pause, hint or not.
        if (!this.#isHinted || found.after !== null) await this.#pause(found.dueMs);
      }
    } catch (error) {
      for (const waiter of this.#waiters) waiter.settle(error as Error);
    } finally {
      forget();
      this.#running = undefined;
    }
  }

  async #look(): Promise<Omit<Received, "messages"> & { messages: ReceivedMessage[] }> {
    if (performance.now() > this.#floorUntilMs) this.#floor = null;
    let limit = 0;
    for (const { max } of this.#waiters) limit += max;
    const found = await this.#options.receive({
      limit: Math.min(limit, maxBatch),
      floor: this.#floor,
      after: this.#after,
    });
    this.#after = found.after;
    if (this.#floor === null) this.#floorUntilMs = performance.now() + floorMs;
    this.#floor = found.floor;
    this.#pollMs = found.messages.length > 0 ? firstPollMs : Math.min(this.#pollMs * 1.5, longestPollMs);
    let from = 0;
    for (const waiter of this.#waiters) {
      if (from === found.messages.length) break;
      waiter.settle(found.messages.slice(from, (from += Math.min(waiter.max, found.messages.length - from))));
    }
    if (from < found.messages.length) await this.#options.giveBack(found.messages.slice(from));
    return found;
  }

  /** Until the next poll, a hint, the next message that is known to come, or somebody's time is over. */
  #pause(dueMs: number | null): Promise<void> {
    const pollMs = this.#pollMs * (0.8 + Math.random() * 0.4);
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake?.(), Math.min(pollMs, Math.ceil(dueMs ?? pollMs)));
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
    });
  }
}
