/**
 * Gives the outcomes of steps to the body of a workflow in the order of their seqs, one a turn: what follows from one (all that promises
 * do by themselves) has happened before the next comes. So a race has the same winner when the body is run again, with
 * recorded outcomes that are all there at once. Owned by the body.
 */

import { onNextTurn } from "../timing/next-turn.js";

interface Ready {
  readonly seq: number;
  readonly deliver: () => void;
}

export class Deliveries {
  /** Sorted from the highest seq to the lowest, if `#isSorted`. */
  readonly #ready: Ready[] = [];
  #isSorted = true;
  /** Outcomes on their way into the journal: nothing with a higher seq may come before them. */
  readonly #flying = new Set<number>();
  #isScheduled = false;
  readonly #onDelivered: () => void;

  constructor(onDelivered: () => void) {
    this.#onDelivered = onDelivered;
  }

  /** Nothing is there, or on its way. */
  get isIdle(): boolean {
    return this.#ready.length === 0 && this.#flying.size === 0;
  }

  /** An outcome with this seq is on its way. */
  begin(seq: number): void {
    this.#flying.add(seq);
  }

  /** It came to nothing. */
  giveUp(seq: number): void {
    this.#flying.delete(seq);
    this.#schedule();
  }

  /** It is there. */
  add(seq: number, deliver: () => void): void {
    this.#flying.delete(seq);
    this.#isSorted &&= this.#ready.length === 0 || seq < this.#ready.at(-1)!.seq;
    this.#ready.push({ seq, deliver });
    this.#schedule();
  }

  /** Forgets everything. */
  clear(): void {
    this.#ready.length = 0;
    this.#flying.clear();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#ready.length === 0) return;
    this.#isScheduled = true;
    onNextTurn(() => {
      this.#isScheduled = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    if (!this.#isSorted) this.#ready.sort((one, other) => other.seq - one.seq);
    this.#isSorted = true;
    const next = this.#ready.at(-1);
    if (next === undefined) return;
    for (const seq of this.#flying) if (seq < next.seq) return;
    this.#ready.pop();
    next.deliver();
    this.#onDelivered();
    this.#schedule();
  }
}
