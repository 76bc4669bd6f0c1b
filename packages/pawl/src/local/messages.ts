/**
 * Sends, acknowledges and extends messages for callers of this process. Calls that happen together
 * share one statement. Notifies receivers of this process of visible messages. Used by the Postgres
 * transport.
 */

import type { NewMessage, QueueStore, Receipt, SentMessage, Settled } from "../store/queue-store.js";
import { Batcher } from "../timing/batch.js";
import type { ErrorKinds, LockLanes } from "../timing/slow-lanes.js";
import type { Hub } from "./hub.js";

/** Added to the size of each body, so that batches of small messages are bounded too. */
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
        const { done } = this.#notify(await this.#store.ack(batches.flat()));
        return batches.map(() => done);
      },
      sizeOf: (batch) => batch.length * messageBytes,
    });
  }

  /** Sends messages, all or none. Resolves when they are committed. */
  send(messages: readonly NewMessage[]): Promise<readonly SentMessage[]> {
    return this.#sends.add(messages);
  }

  /** Deletes messages. Answers which were deleted (`receiptKey`). */
  ack(receipts: readonly Receipt[]): Promise<ReadonlySet<string>> {
    return this.#acks.add(receipts);
  }

  /** Sets a new visibility timeout. Answers which messages were changed (`receiptKey`). */
  async extend(receipts: readonly Receipt[], visibilityMs: number): Promise<ReadonlySet<string>> {
    const extensions = receipts.map((receipt) => ({ ...receipt, visibilityMs }));
    const settled = await this.#lanes.run(() => this.#store.extend(extensions, { unreceived: false }));
    return this.#notify(settled).done;
  }

  async #send(batches: readonly (readonly NewMessage[])[]): Promise<SentMessage[][]> {
    const messages = batches.flat();
    const sent = await this.#store.send(messages, { patient: false });
    // For delayed messages too: receivers then learn when the next message is due.
    for (const queue of new Set(messages.map((message) => message.queue))) {
      this.#hub.visible(queue, { isOld: false });
    }
    let from = 0;
    return batches.map(({ length }) => sent.slice(from, (from += length)));
  }

  #notify(settled: Settled): Settled {
    for (const queue of settled.queues) this.#hub.visible(queue, { isOld: true });
    return settled;
  }
}
