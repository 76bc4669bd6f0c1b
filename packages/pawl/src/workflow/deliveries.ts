/**
 * Gives the outcomes of steps to the body of a workflow in the order of their seqs, one per turn of
 * the event loop: everything that promises do because of one has happened before the next comes. So
 * a race has the same winner when the body runs again with all outcomes recorded. Owned by the
 * journal of the body, and by `replay.ts`.
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
  /** Outcomes that are being recorded: none with a higher seq may come before them. */
  readonly #recording = new Set<number>();
  #isScheduled = false;
  readonly #onDelivered: () => void;

  constructor(onDelivered: () => void) {
    this.#onDelivered = onDelivered;
  }

  /** No outcome is ready or being recorded. */
  get isIdle(): boolean {
    return this.#ready.length === 0 && this.#recording.size === 0;
  }

  /** An outcome with this seq is being recorded. */
  begin(seq: number): void {
    this.#recording.add(seq);
  }

  /** It will not be recorded. */
  giveUp(seq: number): void {
    this.#recording.delete(seq);
    this.#schedule();
  }

  /** It is recorded: deliver it in its turn. */
  add(seq: number, deliver: () => void): void {
    this.#recording.delete(seq);
    this.#isSorted &&= this.#ready.length === 0 || seq < this.#ready.at(-1)!.seq;
    this.#ready.push({ seq, deliver });
    this.#schedule();
  }

  /** Forgets everything. */
  clear(): void {
    this.#ready.length = 0;
    this.#recording.clear();
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
    for (const seq of this.#recording) if (seq < next.seq) return;
    this.#ready.pop();
    next.deliver();
    this.#onDelivered();
    this.#schedule();
  }
}
