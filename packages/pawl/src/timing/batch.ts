/**
 * The batcher. Items that arrive while a call is in flight share the next call, without any timer:
 * a lone item leaves at once, and a thousand share a transaction. Before each call it waits one
 * turn of the event loop, so that all items that are ready now go together.
 *
 * One item never delays the others. If a call fails as a whole, though the database can be reached,
 * each of its items is sent alone. An item whose row somebody has locked is repeated alone, in slow
 * lanes, until it is answered. A call of `send` must write nothing if it throws.
 *
 * Without `guarded`, an outage is an error for the callers: starts, signals and messages. With it,
 * calls are repeated until they are answered: outcomes and journals, which the SQL guards by claim.
 */

import { onNextTurn } from "./next-turn.js";
import { RetryDelay } from "./retry-delay.js";
import { type ErrorKinds, SlowLanes } from "./slow-lanes.js";

const maxBatch = 500;
const maxBatchBytes = 8 * 1024 * 1024;
/** The longest delay before an item is repeated that the database refuses: that may last. */
const refusedMaxMs = 5_000;
const busyMaxMs = 1_000;

/** The answer for an item whose row somebody has locked. */
interface Busy {
  readonly kind: "busy";
}

/** For writes that a claim guards, so that a second arrival is harmless. */
export interface Guarded<Item, Answer> {
  /** Items of one key are sent in order, and those of one call at a time. */
  keyOf(item: Item): string;
  /** The order of items in a call. */
  compare(one: Item, other: Item): number;
  /** The answer for items that `drop` forgets. */
  readonly dropped: Answer;
  /** A call failed and will be repeated. Called once until a call is answered. */
  onFailure(error: unknown, items: number): void;
  /** An item was answered after it was dropped. */
  onLate?(item: Item, answer: Answer): void;
}

export interface BatcherOptions<Item, Answer> extends ErrorKinds {
  /** Sends items in one call and answers in the same order. */
  send(items: readonly Item[], options: { readonly isAlone: boolean }): Promise<readonly (Answer | Busy)[]>;
  sizeOf(item: Item): number;
  /** Calls in flight at once. Default 1. */
  readonly lanes?: number;
  readonly guarded?: Guarded<Item, Answer>;
}

interface Entry<Item, Answer> {
  readonly item: Item;
  /** The line of its key; null: it has no key. */
  readonly line: Line<Entry<Item, Answer>> | null;
  readonly bytes: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  isDropped: boolean;
}

export class Batcher<Item, Answer> {
  readonly #options: BatcherOptions<Item, Answer>;
  readonly #lanes: number;
  readonly #lines = new Lines<Entry<Item, Answer>>();
  readonly #slow: SlowLanes;
  #queue: Entry<Item, Answer>[] = [];
  #inFlight = 0;
  #isScheduled = false;
  /** The last failure was reported. */
  #isReported = false;

  constructor(options: BatcherOptions<Item, Answer>) {
    this.#options = options;
    this.#lanes = options.lanes ?? 1;
    const isBusy = (error: unknown): boolean => error instanceof RowBusy || options.isBusy(error);
    this.#slow =
      options.guarded === undefined
        ? new SlowLanes({ isBusy })
        : new SlowLanes({
            // Guarded items are repeated whatever the error is, and do not wait for each other.
            isBusy: () => true,
            lanes: Number.POSITIVE_INFINITY,
            longestDelayMs: (error) => (isBusy(error) || options.isOutage(error) ? busyMaxMs : refusedMaxMs),
          });
  }

  /** Sends this item together with the others of this turn. */
  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { guarded } = this.#options;
      const line = guarded === undefined ? null : this.#lines.open(guarded.keyOf(item));
      const entry = { item, line, bytes: this.#options.sizeOf(item), resolve, reject, isDropped: false };
      line?.entries.push(entry);
      this.#queue.push(entry);
      this.#schedule();
    });
  }

  /** Whether an item of this key waits for its answer. */
  has(key: string): boolean {
    return this.#lines.has(key);
  }

  /**
   * Forgets the items of this key, since its claim is lost. The SQL guard answers a call in flight.
   */
  drop(key: string): void {
    for (const entry of this.#lines.drop(key)) {
      entry.isDropped = true;
      entry.resolve(this.#options.guarded!.dropped);
    }
  }

  /** Forgets the items of all keys. */
  dropAll(): void {
    for (const key of this.#lines.all()) this.drop(key);
    this.#queue = [];
  }

  #schedule(): void {
    if (this.#isScheduled || this.#inFlight >= this.#lanes) return;
    this.#isScheduled = true;
    onNextTurn(() => {
      this.#isScheduled = false;
      const batch = this.#take();
      if (batch.length === 0) return;
      void this.#send(batch);
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  /** The next call: items in order, of keys that have nothing in flight. */
  #take(): Entry<Item, Answer>[] {
    const queue = this.#queue;
    const batch: Entry<Item, Answer>[] = [];
    const left: Entry<Item, Answer>[] = [];
    let bytes = 0;
    let index = 0;
    for (; index < queue.length; index++) {
      const entry = queue[index]!;
      if (entry.isDropped) continue;
      if (entry.line?.isSending === true) {
        left.push(entry);
        continue;
      }
      const isFull = batch.length === maxBatch || (bytes + entry.bytes > maxBatchBytes && batch.length > 0);
      if (isFull) break;
      bytes += entry.bytes;
      batch.push(entry);
    }
    this.#queue = index < queue.length ? left.concat(queue.slice(index)) : left;
    const { guarded } = this.#options;
    if (guarded === undefined) return batch;
    for (const { line } of batch) line!.isSending = true;
    return batch.toSorted((one, other) => guarded.compare(one.item, other.item));
  }

  async #send(batch: Entry<Item, Answer>[]): Promise<void> {
    this.#inFlight++;
    await this.#sendUntilAnswered(batch);
    for (const { line } of batch) if (line !== null) this.#lines.endSending(line);
    this.#inFlight--;
    if (this.#queue.length > 0) this.#schedule();
  }

  /** Repeats the call of guarded items during an outage. Never rejects. */
  async #sendUntilAnswered(batch: Entry<Item, Answer>[]): Promise<void> {
    const { guarded } = this.#options;
    const retryDelay = new RetryDelay();
    let waiting = batch;
    while (waiting.length > 0) {
      try {
        const items = waiting.map(({ item }) => item);
        const answers = await this.#options.send(items, { isAlone: false });
        this.#isReported = false;
        for (let index = 0; index < waiting.length; index++) this.#answer(waiting[index]!, answers[index]!);
        return;
      } catch (error) {
        this.#report(error, waiting.length);
        if (!this.#options.isOutage(error)) {
          // Perhaps the fault of one item: nobody else waits for it.
          for (const entry of waiting) this.#sendAlone(entry, { isRepeat: false });
          return;
        }
        if (guarded === undefined) {
          for (const { reject } of waiting) reject(error);
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, retryDelay.next()));
        waiting = waiting.filter(({ isDropped }) => !isDropped);
      }
    }
  }

  #answer(entry: Entry<Item, Answer>, answer: Answer | Busy): void {
    if (isBusyAnswer(answer)) this.#sendAlone(entry, { isRepeat: true });
    else this.#settle(entry, answer);
  }

  #settle(entry: Entry<Item, Answer>, answer: Answer): void {
    if (entry.isDropped) {
      this.#options.guarded?.onLate?.(entry.item, answer);
      return;
    }
    entry.line?.close(entry);
    entry.resolve(answer);
  }

  /** Sends an item alone until it is answered; the items of one key one after the other. */
  #sendAlone(entry: Entry<Item, Answer>, { isRepeat }: { isRepeat: boolean }): void {
    if (entry.isDropped) return;
    const { line } = entry;
    const slow = line === null ? [entry] : line.joinSlow(entry);
    if (slow !== null) void this.#sendSlow(line, slow, isRepeat);
  }

  async #sendSlow(
    line: Entry<Item, Answer>["line"],
    slow: Entry<Item, Answer>[],
    isRepeat: boolean,
  ): Promise<void> {
    for (let isFirst = true; slow.length > 0; isFirst = false) {
      const entry = slow[0]!;
      try {
        const call = (): Promise<Answer | null> => this.#sendOne(entry);
        const answer = await this.#slow.run(call, { isRepeat: isRepeat && isFirst });
        if (answer !== null) this.#settle(entry, answer);
      } catch (error) {
        entry.reject(error);
      }
      slow.shift();
    }
    if (line !== null && this.#lines.endSlow(line, slow) && this.#queue.length > 0) this.#schedule();
  }

  /** One try. Null: the item was dropped meanwhile. */
  async #sendOne(entry: Entry<Item, Answer>): Promise<Answer | null> {
    if (entry.isDropped) return null;
    try {
      const [answer] = await this.#options.send([entry.item], { isAlone: true });
      this.#isReported = false;
      if (isBusyAnswer(answer!)) throw new RowBusy();
      return answer!;
    } catch (error) {
      if (!(error instanceof RowBusy)) this.#report(error, 1);
      throw error;
    }
  }

  #report(error: unknown, items: number): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#options.guarded?.onFailure(error, items);
  }
}

class RowBusy extends Error {}

function isBusyAnswer<Answer>(answer: Answer | Busy): answer is Busy {
  return typeof answer === "object" && answer !== null && "kind" in answer && answer.kind === "busy";
}

/** The guarded items of one key that have no answer yet. */
class Line<Queued> {
  readonly key: string;
  readonly entries: Queued[] = [];
  /** Some are in a call, or in a slow lane. */
  isSending = false;
  /** Those in a slow lane, in order. */
  slow: Queued[] | null = null;

  constructor(key: string) {
    this.key = key;
  }

  close(entry: Queued): void {
    const index = this.entries.indexOf(entry);
    if (index !== -1) this.entries.splice(index, 1);
  }

  /** The items of a key that is new to the slow lanes; null: the entry waits behind others. */
  joinSlow(entry: Queued): Queued[] | null {
    if (this.slow !== null) {
      this.slow.push(entry);
      return null;
    }
    return (this.slow = [entry]);
  }
}

/** The lines of all keys that have items without an answer, or in a call. */
class Lines<Queued> {
  readonly #byKey = new Map<string, Line<Queued>>();

  all(): string[] {
    return [...this.#byKey.keys()];
  }

  has(key: string): boolean {
    return (this.#byKey.get(key)?.entries.length ?? 0) > 0;
  }

  open(key: string): Line<Queued> {
    let line = this.#byKey.get(key);
    if (line === undefined) this.#byKey.set(key, (line = new Line(key)));
    return line;
  }

  /** Answers the entries that were open. Later ones of the key wait for a call in flight. */
  drop(key: string): Queued[] {
    const line = this.#byKey.get(key);
    if (line === undefined) return [];
    if (line.slow !== null) line.isSending = false;
    line.slow = null;
    const dropped = line.entries.splice(0);
    this.#forgetIfIdle(line);
    return dropped;
  }

  /** A call with this key was answered. The key stays taken while a slow lane has it. */
  endSending(line: Line<Queued>): void {
    if (line.slow !== null) return;
    line.isSending = false;
    this.#forgetIfIdle(line);
  }

  /** False: the key was dropped meanwhile. */
  endSlow(line: Line<Queued>, slow: readonly Queued[]): boolean {
    if (line.slow !== slow) return false;
    line.slow = null;
    line.isSending = false;
    this.#forgetIfIdle(line);
    return true;
  }

  #forgetIfIdle(line: Line<Queued>): void {
    if (line.entries.length > 0 || line.isSending) return;
    // A dropped line may have a successor.
    if (this.#byKey.get(line.key) === line) this.#byKey.delete(line.key);
  }
}
