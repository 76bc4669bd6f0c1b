/**
 * Receives messages for callers of this process. Callers that want the same share one look at the database at a time, and what it
 * finds is dealt out among them, first come, first served. Who waits is served by a hint of this process (`local/hub.ts`) at once, else by
 * polling: 20 ms after the last message, then more and more rarely, up to a second. A message for somebody who has gone meanwhile is
 * given to the next, or back to the queue as if it had never been received. Used by the client.
 */

import type { Logger } from "../values/logger.js";
import type { QueueStore, StoredMessage, Wanted } from "../store/queue-store.js";
import { newClaimId } from "../values/claim-id.js";
import { Look } from "./message-poll.js";
import type { Hub } from "./hub.js";

/** Looks that nobody waits for are kept for their marks, up to so many. */
const maxLooks = 1_000;
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
  readonly #looks = new Map<string, Look>();
  #closed: Error | undefined;
  #expiresAtMs = 0;
  #marks: string | null = null;

  constructor(store: QueueStore, hub: Hub, logger: Logger) {
    this.#store = store;
    this.#hub = hub;
    this.#logger = logger;
  }

  /** At least one message as soon as there is one, at most `max`; none once the time is over or the signal aborted. */
  receive(wanted: Wanted, { max, waitMs, signal }: ReceiveOptions): Promise<ReceivedMessage[]> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (signal?.aborted === true) return Promise.resolve([]);
    const key = JSON.stringify([wanted.queue, wanted.visibilityMs, wanted.maxReceives, wanted.match]);
    let look = this.#looks.get(key);
    if (look === undefined) {
      this.#forgetIdle();
      look = new Look(wanted, {
        hub: this.#hub,
        receive: async (request) => {
          const receipt = newClaimId();
          const received = await this.#store.receive({ ...wanted, ...request, receipt });
          const messages = received.messages.map((message) => ({ ...message, receipt }));
          return { ...received, messages };
        },
        giveBack: (messages) => this.#giveBack(wanted.queue, messages),
        expire: () => this.#expire(),
      });
      this.#looks.set(key, look);
    }
    return look.wait(max, waitMs, signal);
  }

  /** Gives up on everybody who waits; resolves when what was on its way is given back. */
  async close(reason: Error): Promise<void> {
    this.#closed = reason;
    await Promise.all([...this.#looks.values()].map((look) => look.close(reason)));
  }

  /** Nobody is there to take them any more. If this fails, their visibility ends. */
  async #giveBack(queue: string, messages: readonly ReceivedMessage[]): Promise<void> {
    try {
      const receipts = messages.map(({ id, receipt }) => ({ queue, id, receipt, visibilityMs: 0 }));
      await this.#store.extend(receipts, { unreceived: true });
      this.#hub.visible(queue, { isOld: true });
    } catch (error) {
      this.#logger.warn(
        { err: error },
        "pawl: messages for a receiver that has gone stay in flight until their visibility ends",
      );
    }
  }

  /** Every second, if somebody waits: where no worker runs, nobody else makes expired messages visible. */
  async #expire(): Promise<void> {
    if (performance.now() < this.#expiresAtMs) return;
    this.#expiresAtMs = performance.now() + expireMs;
    const { queues, marks } = await this.#store.expire(expireBatch, this.#marks);
    this.#marks = marks;
    for (const queue of queues) this.#hub.visible(queue, { isOld: true });
  }

  #forgetIdle(): void {
    if (this.#looks.size < maxLooks) return;
    for (const [key, look] of this.#looks) if (look.isIdle) this.#looks.delete(key);
  }
}
