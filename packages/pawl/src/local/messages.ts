/**
 * Sends and acknowledges messages for callers of this process, those that come together in one statement, and tells the receivers of
 * this process what has become visible. Used by the client.
 */

import type { NewMessage, QueueStore, Receipt, SentMessage, Settled } from "../store/queue-store.js";
import { Batcher } from "../timing/batch.js";
import type { ErrorKinds, LockLanes } from "../timing/slow-lanes.js";
import type { Hub } from "./hub.js";

/** What a message weighs in a group beside its body, so that small ones are bounded too. */
const messageBytes = 500;

export class Messages {
  readonly #store: QueueStore;
  readonly #hub: Hub;
  readonly #sends: Batcher<readonly NewMessage[], SentMessage[]>;
  readonly #acks: Batcher<readonly Receipt[], ReadonlySet<string>>;
  readonly #lanes: LockLanes;

  constructor(store: QueueStore, hub: Hub, { lanes, ...errors }: ErrorKinds & { readonly lanes: LockLanes }) {
    this.#store = store;
    this.#hub = hub;
    this.#lanes = lanes;
    this.#sends = new Batcher({
      ...errors,
      send: (batches) => this.#send(batches),
      sizeOf: (batch) => batch.reduce((bytes, { body }) => bytes + body.length + messageBytes, 0),
    });
    this.#acks = new Batcher({
      ...errors,
      send: async (batches) => {
        const { done } = this.#tell(await this.#store.ack(batches.flat()));
        return batches.map(() => done);
      },
      sizeOf: (batch) => batch.length * messageBytes,
    });
  }

  /** Sends messages, all or none; resolves when they are committed. */
  send(messages: readonly NewMessage[]): Promise<readonly SentMessage[]> {
    return this.#sends.add(messages);
  }

  /** Deletes messages; answers which of them were deleted (`receiptKey`). */
  ack(receipts: readonly Receipt[]): Promise<ReadonlySet<string>> {
    return this.#acks.add(receipts);
  }

  /** Sets how long messages stay in flight; answers which of them were changed. */
  async extend(receipts: readonly Receipt[], visibilityMs: number): Promise<ReadonlySet<string>> {
    const extensions = receipts.map((receipt) => ({ ...receipt, visibilityMs }));
    const settled = await this.#lanes.run(() => this.#store.extend(extensions, { unreceived: false }));
    return this.#tell(settled).done;
  }

  async #send(batches: readonly (readonly NewMessage[])[]): Promise<SentMessage[][]> {
    const messages = batches.flat();
    const sent = await this.#store.send(messages, { patient: false });
    // Of delayed ones too: who waits then learns when the next is due.
    for (const queue of new Set(messages.map((message) => message.queue))) {
      this.#hub.visible(queue, { isOld: false });
    }
    let from = 0;
    return batches.map(({ length }) => sent.slice(from, (from += length)));
  }

  #tell(settled: Settled): Settled {
    for (const queue of settled.queues) this.#hub.visible(queue, { isOld: true });
    return settled;
  }
}
