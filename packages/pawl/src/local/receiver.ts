/**
 * Receives messages for callers of this process. Callers that want the same messages share one poll
 * (`message-poll.ts`), first come, first served. A hint of this process (`hub.ts`) starts a poll at
 * once; otherwise polls follow at intervals from 20 ms, growing to a second. If a caller has left
 * meanwhile, its message goes to the next caller, or back to the queue as if it had never been
 * received. Used by the Postgres transport.
 */

import type { Logger } from "../values/logger.js";
import type { QueueStore, StoredMessage, ReceiveFilter } from "../store/queue-store.js";
import { newClaimId } from "../values/claim-id.js";
import { MessagePoll } from "./message-poll.js";
import type { Hub } from "./hub.js";

/** Polls that nobody waits for are kept, up to this many: they know where the last call stopped. */
const maxPolls = 1_000;
/**
 * How often messages whose visibility timeout has passed are made visible, and how many at once.
 */
const expireMs = 1_000;
const expireBatch = 1_000;

export interface ReceivedMessage extends StoredMessage {
  readonly receipt: string;
}

export interface ReceiveOptions {
  readonly max: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

export class Receiver {
  readonly #store: QueueStore;
  readonly #hub: Hub;
  readonly #logger: Logger;
  readonly #polls = new Map<string, MessagePoll>();
  #closed: Error | undefined;
  #expiresAtMs = 0;
  #marks: string | null = null;

  constructor(store: QueueStore, hub: Hub, logger: Logger) {
    this.#store = store;
    this.#hub = hub;
    this.#logger = logger;
  }

  /**
   * Waits for the first message and returns up to `max`; none once the time has passed or the
   * signal is aborted.
   */
  receive(filter: ReceiveFilter, { max, waitMs, signal }: ReceiveOptions): Promise<ReceivedMessage[]> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (signal?.aborted === true) return Promise.resolve([]);
    const key = JSON.stringify([filter.queue, filter.visibilityMs, filter.maxReceives, filter.match]);
    let poll = this.#polls.get(key);
    if (poll === undefined) {
      this.#forgetIdle();
      poll = new MessagePoll(filter, {
        hub: this.#hub,
        receive: async (request) => {
          const receipt = newClaimId();
          const received = await this.#store.receive({ ...filter, ...request, receipt });
          const messages = received.messages.map((message) => ({ ...message, receipt }));
          return { ...received, messages };
        },
        giveBack: (messages) => this.#giveBack(filter.queue, messages),
        expire: () => this.#expire(),
      });
      this.#polls.set(key, poll);
    }
    return poll.wait(max, waitMs, signal);
  }

  /** Fails all calls that wait. Resolves when messages in flight to them are back in the queue. */
  async close(reason: Error): Promise<void> {
    this.#closed = reason;
    await Promise.all([...this.#polls.values()].map((poll) => poll.close(reason)));
  }

  /** Their caller has left. If this fails, they become visible after their visibility timeout. */
  async #giveBack(queue: string, messages: readonly ReceivedMessage[]): Promise<void> {
    try {
      const receipts = messages.map(({ id, receipt }) => ({ queue, id, receipt, visibilityMs: 0 }));
      await this.#store.extend(receipts, { unreceived: true });
      this.#hub.visible(queue, { isOld: true });
    } catch (error) {
      this.#logger.warn(
        { err: error },
        "pawl: cannot return messages of a caller that left; they become visible after their visibility timeout",
      );
    }
  }

  /** Once a second while somebody waits: without workers, nobody else does it. */
  async #expire(): Promise<void> {
    if (performance.now() < this.#expiresAtMs) return;
    this.#expiresAtMs = performance.now() + expireMs;
    const { queues, marks } = await this.#store.expire(expireBatch, this.#marks);
    this.#marks = marks;
    for (const queue of queues) this.#hub.visible(queue, { isOld: true });
  }

  #forgetIdle(): void {
    if (this.#polls.size < maxPolls) return;
    for (const [key, poll] of this.#polls) if (poll.isIdle) this.#polls.delete(key);
  }
}
