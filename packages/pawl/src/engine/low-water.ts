/**
 * Where the next look at a queue begins: at the first run that the last one claimed instead of at the dead head of the index, or behind
 * what it had to pass over. Only a shortcut: it is dropped every second, and when older runs become claimable, so that it hides
 * nothing. Kept by each feeder, and by a server for those who wait there.
 */

import type { Claimable, LookFrom } from "../store/store.js";

const longestMs = 1_000;
const nowhere: LookFrom = { floor: null, after: null };

export class LowWater {
  #from: LookFrom = nowhere;
  #sinceMs = 0;
  /** How often older runs have become claimable: what a look in flight finds says nothing about those. */
  #lowerings = 0;

  get from(): LookFrom {
    return this.#from;
  }

  /** To be given to `accept` with what a look finds that begins now. */
  mark(): number {
    return this.#lowerings;
  }

  accept({ floor, after }: LookFrom, mark: number): void {
    if (mark !== this.#lowerings) {
      this.#from = nowhere;
      return;
    }
    const nowMs = performance.now();
    if (this.#from.floor === null) this.#sinceMs = nowMs;
    this.#from = { after, floor: nowMs - this.#sinceMs < longestMs ? floor : null };
  }

  /** Begin at the head again. */
  rewind(): void {
    this.#from = nowhere;
    this.#lowerings++;
  }

  /** Runs have become claimable, none of them before this in the order of claims. */
  lower({ priority, microseconds }: Claimable): void {
    const { floor, after } = this.#from;
    const isBefore = (mark: readonly [number, number, ...unknown[]] | null): boolean =>
      mark !== null && (priority < mark[0] || (priority === mark[0] && microseconds < mark[1]));
    if (isBefore(floor)) this.#from = { floor: [priority, microseconds], after };
    if (isBefore(after)) this.#from = { floor: this.#from.floor, after: null };
    this.#lowerings++;
  }
}
