/**
 * Where the next look at a queue begins: at the first run that the last one claimed instead of at the dead head of the index, or behind
 * what it had to pass over. Only a shortcut: it is dropped every second, and lowered when older runs become claimable, so that it
 * hides nothing.
 *
 * While an old transaction is open, all that has ended since is still in the way of a look at the whole queue. Such a walk is made
 * again only after a rest ten times as long; until then looks begin at the mark and go no further (`bounded`).
 * Kept by each feeder, and by a server for those who wait there; one look at a time.
 */

import type { Claimable, Claimed, LookFrom } from "../store/store.js";

const longestMs = 1_000;
const nowhere: LookFrom = { floor: null, after: null };
const wholeRest = 10;
const longestRestMs = 10_000;
/** What a look takes that walks over nothing, at most, and each run that it finds. */
const lookMs = 5;
const runMs = 0.1;

interface Look extends LookFrom {
  readonly bounded: boolean;
}

export class LowWater {
  #from: LookFrom = nowhere;
  #sinceMs = 0;
  /** No look at the whole queue before that. */
  #wholeAtMs = 0;
  #look: Look & { readonly askedMs: number } = { ...nowhere, bounded: false, askedMs: 0 };
  /** What became claimable while a look was in flight, which says nothing about it; null: it may be anything. */
  #lowered: Claimable[] | null = [];

  /** A look begins now: where. */
  look(): Look {
    const askedMs = performance.now();
    const bounded = this.#from.floor !== null && askedMs < this.#wholeAtMs;
    const isOld = askedMs - this.#sinceMs >= longestMs;
    const floor = isOld && !bounded ? null : this.#from.floor;
    this.#lowered = [];
    this.#look = { floor, bounded, after: this.#from.after, askedMs };
    return { floor, bounded, after: this.#from.after };
  }

  /** What it has found. */
  accept({ floor, after, runs }: Pick<Claimed, "floor" | "after" | "runs">): void {
    const nowMs = performance.now();
    if (this.#look.floor === null) this.#sinceMs = nowMs;
    if (!this.#look.bounded) {
      const walkedMs = nowMs - this.#look.askedMs - lookMs - runs.length * runMs;
      this.#wholeAtMs = nowMs + Math.min(Math.max(0, walkedMs) * wholeRest, longestRestMs);
    }
    const found = { after, floor: floor ?? this.#from.floor };
    this.#from = this.#lowered === null ? nowhere : this.#lowered.reduce(lowered, found);
  }

  /** After a bounded look, how long until the whole queue may be looked at again; else null. */
  restMs(): number | null {
    return this.#look.bounded ? Math.max(1, this.#wholeAtMs - performance.now()) : null;
  }

  /** Begin at the head again. */
  rewind(): void {
    this.#from = nowhere;
    this.#lowered = null;
  }

  /** Runs have become claimable, none of them before this in the order of claims. */
  lower(claimable: Claimable): void {
    this.#from = lowered(this.#from, claimable);
    this.#lowered?.push(claimable);
  }
}

/** Where to look, once runs have become claimable of which none is before this. */
function lowered({ floor, after }: LookFrom, { priority, microseconds }: Claimable): LookFrom {
  const isBefore = (mark: readonly [number, number, ...unknown[]] | null): boolean =>
    mark !== null && (priority < mark[0] || (priority === mark[0] && microseconds < mark[1]));
  return {
    floor: isBefore(floor) ? [priority, microseconds] : floor,
    after: isBefore(after) ? null : after,
  };
}
