/**
 * Where the next look at a queue begins: at the first run that the last one claimed instead of at the dead head of the index. Only a
 * shortcut: it is dropped every second, and lowered when older runs become claimable, so that it hides nothing: a
 * caller's transaction may commit a run long after its due time.
 *
 * While an old transaction is open, all that has ended since is still in the way of a look at the whole queue. Such a walk is made
 * again only after a rest ten times as long; until then looks begin at the mark and go no further (`bounded`).
 *
 * A look probes each definition. With more than 50 of them it also rests from those that had nothing to claim: between two looks at
 * all definitions it looks at those alone that had due runs at the last.
 * Kept by each claimer, and by a server for those who wait there; one look at a time.
 */

import type { Claimable, Claimed, Floor, Served } from "../store/store.js";

const longestMs = 1_000;
const wholeRest = 10;
const longestRestMs = 10_000;
/** What a look takes that walks over nothing, at most, and each run that it finds. */
const lookMs = 5;
const runMs = 0.1;
/** As many definitions are probed at every look; of more, all are after a rest of so long for each of them. */
const few = 50;
const definitionRestMs = 0.05;

interface Look extends Served {
  readonly floor: Floor;
  readonly bounded: boolean;
  /** It sees every definition from its head on: what it does not know of is not there. */
  readonly isWhole: boolean;
}

export class ClaimCursor {
  readonly #served: Served;
  #floor: Floor = null;
  #sinceMs = 0;
  /** No look at the whole queue before that. */
  #wholeAtMs = 0;
  /** No look at all definitions before that. */
  #allAtMs = 0;
  /** Those that had due runs when all were looked at. */
  #busy: Served | null = null;
  #look = { floor: null as Floor, bounded: false, isPart: false, askedMs: 0 };
  /** What became claimable while a look was in flight, which says nothing about it; null: it may be anything. */
  #lowered: Claimable[] | null = [];

  constructor({ names, versions }: Served) {
    this.#served = { names, versions };
  }

  /** A look begins now: where, and at which definitions. */
  begin(): Look {
    const askedMs = performance.now();
    const bounded = this.#floor !== null && askedMs < this.#wholeAtMs;
    const isOld = askedMs - this.#sinceMs >= longestMs;
    const floor = isOld && !bounded ? null : this.#floor;
    const part = askedMs < this.#allAtMs ? this.#busy : null;
    this.#lowered = [];
    this.#look = { floor, bounded, isPart: part !== null, askedMs };
    return { ...(part ?? this.#served), floor, bounded, isWhole: !bounded && part === null };
  }

  /** What it has found. */
  accept({ floor, busy, runs }: Pick<Claimed, "floor" | "busy" | "runs">): void {
    const nowMs = performance.now();
    if (this.#look.floor === null) this.#sinceMs = nowMs;
    if (!this.#look.bounded) {
      const walkedMs = nowMs - this.#look.askedMs - lookMs - runs.length * runMs;
      this.#wholeAtMs = nowMs + Math.min(Math.max(0, walkedMs) * wholeRest, longestRestMs);
    }
    if (!this.#look.isPart) this.#remember(busy, nowMs);
    const found = floor ?? this.#floor;
    this.#floor = this.#lowered === null ? null : this.#lowered.reduce(lowered, found);
  }

  /** After a look that was not at everything, how long until that may be looked at again; else null. */
  restMs(): number | null {
    const { bounded, isPart } = this.#look;
    if (!bounded && !isPart) return null;
    const atMs = Math.max(bounded ? this.#wholeAtMs : 0, isPart ? this.#allAtMs : 0);
    return Math.max(1, atMs - performance.now());
  }

  /** Begin at the head again. */
  rewind(): void {
    this.#floor = null;
    this.#lowered = null;
  }

  /** Runs have become claimable, none of them before this in the order of claims. */
  lower(claimable: Claimable): void {
    this.#floor = lowered(this.#floor, claimable);
    this.#lowered?.push(claimable);
  }

  #remember(busy: Claimed["busy"], nowMs: number): void {
    const { names, versions } = this.#served;
    const isWorthwhile = busy !== null && busy.length > 0 && names.length > few;
    this.#busy = isWorthwhile
      ? { names: busy.map((at) => names[at - 1]!), versions: busy.map((at) => versions[at - 1]!) }
      : null;
    this.#allAtMs = nowMs + names.length * definitionRestMs;
  }
}

/** Where to look, once runs have become claimable of which none is before this. */
function lowered(floor: Floor, { priority, microseconds }: Claimable): Floor {
  if (floor === null) return null;
  const isBefore = priority < floor[0] || (priority === floor[0] && microseconds < floor[1]);
  return isBefore ? [priority, microseconds] : floor;
}
