/**
 * Calls for many callers of this process at once: whatever comes while a call is in flight shares the next one, like
 * commits do, without any timer. A call does not wait long in the database for what somebody has locked: it fails as busy, having
 * written nothing, and then each of its items is sent by itself, again and again, in a few slow lanes, so that what must
 * wait delays nobody else and takes no connections from them. Used by the starts and the signals.
 */

import { Patience } from "./patience.js";
import { onNextTurn } from "./turn.js";

const maxBatch = 500;
const maxBatchBytes = 8 * 1024 * 1024;
const slowLanes = 3;

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** What the errors of a call mean. */
export interface ErrorKinds {
  /** Nothing is known of a call that failed like this: it must not be sent again. */
  isOutage(error: unknown): boolean;
  /** Somebody has locked what the call needs. */
  isBusy(error: unknown): boolean;
}

export interface GroupOptions<Item, Answer> extends ErrorKinds {
  /** Sends items in one call, which waits for no lock, and answers in the same order. */
  send(items: readonly Item[]): Promise<readonly Answer[]>;
  sizeOf(item: Item): number;
}

export class Group<Item, Answer> {
  readonly #options: GroupOptions<Item, Answer>;
  #queue: Waiting<Item, Answer>[] = [];
  #slow: Waiting<Item, Answer>[] = [];
  #isBusy = false;
  #lanes = 0;

  constructor(options: GroupOptions<Item, Answer>) {
    this.#options = options;
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
    this.#slow.push(...batch);
    for (; this.#lanes < Math.min(slowLanes, this.#slow.length); this.#lanes++) void this.#crawl();
  }

  async #crawl(): Promise<void> {
    const patience = new Patience();
    for (let next = this.#slow.shift(); next !== undefined; next = this.#slow.shift()) {
      const { item, resolve, reject } = next;
      try {
        const [answer] = await this.#options.send([item]);
        resolve(answer!);
        patience.reset();
      } catch (error) {
        if (!this.#options.isBusy(error)) {
          reject(error);
          continue;
        }
        this.#slow.push(next);
        await new Promise((wake) => setTimeout(wake, patience.next()));
      }
    }
    this.#lanes--;
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
