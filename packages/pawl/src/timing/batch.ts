/**
 * Calls for many callers of this process at once: whatever comes while a call is in flight shares the next one, like
 * commits do, without any timer. A call does not wait long in the database for what somebody has locked: it fails as busy, having
 * written nothing, and then each of its items is sent by itself, in slow lanes (`timing/slow-lanes.ts`). Used by the starts, the signals and
 * the messages.
 */

import { type ErrorKinds, SlowLanes } from "./slow-lanes.js";
import { onNextTurn } from "./next-turn.js";

const maxBatch = 500;
const maxBatchBytes = 8 * 1024 * 1024;

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupOptions<Item, Answer> extends ErrorKinds {
  /** Sends items in one call, which waits for no lock, and answers in the same order. */
  send(items: readonly Item[]): Promise<readonly Answer[]>;
  sizeOf(item: Item): number;
}

export class Group<Item, Answer> {
  readonly #options: GroupOptions<Item, Answer>;
  #queue: Waiting<Item, Answer>[] = [];
  readonly #slow: SlowLanes;
  #isBusy = false;

  constructor(options: GroupOptions<Item, Answer>) {
    this.#options = options;
    this.#slow = new SlowLanes(options);
  }

  /** Sends this item together with whatever else this process sends just now. */
  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject });
      if (this.#isBusy) return;
      this.#isBusy = true;
      onNextTurn(() => void this.#pump());
    });
  }

  async #pump(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#take();
      try {
        const answers = await this.#options.send(batch.map(({ item }) => item));
        for (const [index, { resolve }] of batch.entries()) resolve(answers[index]!);
      } catch (error) {
        if (this.#options.isOutage(error)) for (const { reject } of batch) reject(error);
        else this.#slowDown(batch);
      }
    }
    this.#isBusy = false;
  }

  /** One of them is locked, or refused, and nothing was written: each by itself. */
  #slowDown(batch: readonly Waiting<Item, Answer>[]): void {
    for (const { item, resolve, reject } of batch) {
      const sent = async (): Promise<Answer> => (await this.#options.send([item]))[0]!;
      this.#slow.run(sent).then(resolve, reject);
    }
  }

  #take(): Waiting<Item, Answer>[] {
    let bytes = 0;
    const tooMany = this.#queue.findIndex(({ item }, index) => {
      bytes += this.#options.sizeOf(item);
      return index === maxBatch || (bytes > maxBatchBytes && index > 0);
    });
    return this.#queue.splice(0, tooMany === -1 ? this.#queue.length : tooMany);
  }
}
