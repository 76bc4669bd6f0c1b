/**
 * Calls for many callers of this process at once: whatever comes while a call is in flight shares the next one, like
 * commits do, without any timer. A shared call must not wait long for one of its items: it fails instead, having written nothing,
 * and then each is sent by itself, so that it fails or waits alone. Used by the starts and the signals.
 */

const maxBatch = 500;
const maxBatchBytes = 8 * 1024 * 1024;

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupOptions<Item, Answer> {
  /** Sends items and answers in the same order. `isShared`: for several callers. */
  send(items: readonly Item[], isShared: boolean): Promise<readonly Answer[]>;
  sizeOf(item: Item): number;
  /** Nothing is known of a call that failed like this: it must not be sent again. */
  isOutage(error: unknown): boolean;
}

export class Group<Item, Answer> {
  readonly #options: GroupOptions<Item, Answer>;
  #queue: Waiting<Item, Answer>[] = [];
  #isBusy = false;

  constructor(options: GroupOptions<Item, Answer>) {
    this.#options = options;
  }

  /** Sends this item together with whatever else this process sends just now. */
  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject });
      if (this.#isBusy) return;
      this.#isBusy = true;
      setImmediate(() => void this.#pump());
    });
  }

  async #pump(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#take();
      try {
        const answers = await this.#options.send(
          batch.map(({ item }) => item),
          true,
        );
        for (const [index, { resolve }] of batch.entries()) resolve(answers[index]!);
      } catch (error) {
        for (const { item, resolve, reject } of batch) {
          if (this.#options.isOutage(error)) reject(error);
          else void this.#options.send([item], false).then(([answer]) => resolve(answer!), reject);
        }
      }
    }
    this.#isBusy = false;
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
