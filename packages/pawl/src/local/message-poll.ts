/**
 * Polls a queue for all callers of this process that want the same messages: one call at a time for
 * all of them, for as long as somebody waits. Remembers where the calls stopped, so that they do
 * not walk again and again over messages that cannot be received or are gone. Used by the receiver.
 */

import type { Received, ReceiveRequest, ReceiveFilter } from "../store/queue-store.js";
import { type Polled, PollLoop } from "../timing/poll.js";
import type { Hub } from "./hub.js";
import type { ReceivedMessage } from "./receiver.js";

/** The most messages of one call, for all who wait. */
const maxBatch = 500;
const pace = { shortestMs: 20, longestMs: 1_000 };
/** The floor hides messages that become visible late, but not for longer than this. */
const floorMs = 1_000;
/** After this many calls in a row that do not reach the end of the queue, there is a pause. */
const maxWalks = 10;

interface Waiter {
  readonly max: number;
  readonly settle: (messages: ReceivedMessage[] | Error) => void;
  /** The number of the first poll that counts for this waiter. */
  readonly since: number;
  /** Its time has passed: the next poll that counts answers it, with or without messages. */
  isOver: boolean;
}

type Found = Omit<Received, "messages"> & { messages: ReceivedMessage[] };

export interface MessagePollOptions {
  readonly hub: Hub;
  receive(request: Pick<ReceiveRequest, "limit" | "floor" | "after">): Promise<Found>;
  giveBack(messages: readonly ReceivedMessage[]): Promise<void>;
  expire(): Promise<void>;
}

export class MessagePoll {
  readonly #filter: ReceiveFilter;
  readonly #options: MessagePollOptions;
  readonly #waiters = new Set<Waiter>();
  readonly #loop = new PollLoop(pace, () => this.#poll());
  #number = 0;
  #walks = 0;
  #floor: number | null = null;
  #floorUntilMs = 0;
  #after: Received["after"] = null;
  /** Ends the subscription to the hub's hints, while there is one. */
  #unsubscribe: (() => void) | undefined;

  constructor(filter: ReceiveFilter, options: MessagePollOptions) {
    this.#filter = filter;
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#waiters.size === 0 && !this.#loop.isRunning;
  }

  wait(max: number, waitMs: number, signal: AbortSignal | undefined): Promise<ReceivedMessage[]> {
    return new Promise((resolve, reject) => {
      const isOver = (): void => {
        waiter.isOver = true;
        this.#loop.hint();
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
          if (this.#waiters.size === 0) this.#stop();
          if (messages instanceof Error) reject(messages);
          else resolve(messages);
        },
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiters.add(waiter);
      this.#unsubscribe ??= this.#options.hub.onVisible(this.#filter.queue, (isOld) => {
        if (isOld) this.#floor = null;
        this.#loop.hint();
      });
      this.#loop.hint();
      this.#loop.start();
    });
  }

  /** Resolves when no call is in flight. */
  async close(reason: Error): Promise<void> {
    for (const waiter of this.#waiters) waiter.settle(reason);
    await this.#loop.stop();
  }

  /** Nobody waits. A poll in flight still ends, and gives its messages back. */
  #stop(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    void this.#loop.stop();
  }

  async #poll(): Promise<Polled> {
    const number = ++this.#number;
    try {
      const found = await this.#receive();
      const isThrough = found.after === null || ++this.#walks >= maxWalks;
      if (isThrough) this.#walks = 0;
      for (const waiter of this.#waiters) {
        if (waiter.isOver && waiter.since <= number && isThrough) waiter.settle([]);
      }
      if (found.more || !isThrough) return { kind: "again" };
      const isEmpty = found.messages.length === 0;
      if (isEmpty && this.#waiters.size > 0) await this.#options.expire();
      // A walk that has not reached the end pauses, even if there was a hint.
      if (found.after !== null) {
        return { kind: "pause", ms: isEmpty ? pace.longestMs : pace.shortestMs };
      }
      const dueAtMs = found.dueMs === null ? null : performance.now() + found.dueMs;
      return { kind: "drained", found: !isEmpty, dueAtMs };
    } catch (error) {
      for (const waiter of this.#waiters) waiter.settle(error as Error);
      return { kind: "failed" };
    }
  }

  /** One call. Deals its messages out, first come, first served. */
  async #receive(): Promise<Found> {
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
    let from = 0;
    for (const waiter of this.#waiters) {
      if (from === found.messages.length) break;
      waiter.settle(found.messages.slice(from, (from += Math.min(waiter.max, found.messages.length - from))));
    }
    if (from < found.messages.length) await this.#options.giveBack(found.messages.slice(from));
    return found;
  }
}
