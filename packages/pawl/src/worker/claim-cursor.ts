/**
 * Where the next claim of a queue begins: at the first run that the last one claimed, instead of at
 * the dead head of the index. This is only a shortcut. The cursor is dropped every second, and
 * lowered when older runs become claimable, so that it hides no run: a user's transaction may
 * commit a run long after its due time.
 *
 * While an old transaction is open, every run that has ended since still costs a claim of the whole
 * queue. After such a claim the cursor rests ten times as long; until then claims begin at the
 * cursor and go no further (`bounded`).
 *
 * A claim probes each definition. With more than 50 of them, most claims probe only the definitions
 * that had due runs when all were probed last.
 *
 * Kept by each claimer, and by a server for workers that wait there; one claim at a time.
 */

import type { Claimable, Claimed, Floor, Served } from "../store/store.js";

const longestMs = 1_000;
const wholeRest = 10;
const longestRestMs = 10_000;
/** The time of a claim that passes no ended runs, at most, and of each run that it claims. */
const claimMs = 5;
const runMs = 0.1;
/**
 * So many definitions are probed by every claim. More are all probed only after a rest of so long
 * for each.
 */
const fewDefinitions = 50;
const definitionRestMs = 0.05;

/** The range of one claim. */
interface ClaimRange extends Served {
  readonly floor: Floor;
  readonly bounded: boolean;
  /** It sees every definition from its head on: a run that it does not find does not exist. */
  readonly isWhole: boolean;
}

export class ClaimCursor {
  readonly #served: Served;
  #floor: Floor = null;
  #sinceMs = 0;
  /** No claim of the whole queue before this time. */
  #wholeAtMs = 0;
  /** No claim of all definitions before this time. */
  #allAtMs = 0;
  /** The definitions that had due runs when all were probed. */
  #busy: Served | null = null;
  #claim = { floor: null as Floor, bounded: false, isPart: false, askedMs: 0 };
  /**
   * Runs that became claimable while a claim was in flight, which does not know of them; null:
   * perhaps any.
   */
  #lowered: Claimable[] | null = [];

  constructor({ names, versions }: Served) {
    this.#served = { names, versions };
  }

  /** A claim begins now: its range. */
  begin(): ClaimRange {
    const askedMs = performance.now();
    const bounded = this.#floor !== null && askedMs < this.#wholeAtMs;
    const isOld = askedMs - this.#sinceMs >= longestMs;
    const floor = isOld && !bounded ? null : this.#floor;
    const part = askedMs < this.#allAtMs ? this.#busy : null;
    this.#lowered = [];
    this.#claim = { floor, bounded, isPart: part !== null, askedMs };
    return { ...(part ?? this.#served), floor, bounded, isWhole: !bounded && part === null };
  }

  /** The answer of the claim. */
  accept({ floor, busy, runs }: Pick<Claimed, "floor" | "busy" | "runs">): void {
    const nowMs = performance.now();
    if (this.#claim.floor === null) this.#sinceMs = nowMs;
    if (!this.#claim.bounded) {
      const walkedMs = nowMs - this.#claim.askedMs - claimMs - runs.length * runMs;
      this.#wholeAtMs = nowMs + Math.min(Math.max(0, walkedMs) * wholeRest, longestRestMs);
    }
    if (!this.#claim.isPart) this.#remember(busy, nowMs);
    const found = floor ?? this.#floor;
    this.#floor = this.#lowered === null ? null : this.#lowered.reduce(lowered, found);
  }

  /** After a claim that did not see everything, how long until one may; else null. */
  restMs(): number | null {
    const { bounded, isPart } = this.#claim;
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
    const isWorthwhile = busy !== null && busy.length > 0 && names.length > fewDefinitions;
    this.#busy = isWorthwhile
      ? { names: busy.map((at) => names[at - 1]!), versions: busy.map((at) => versions[at - 1]!) }
      : null;
    this.#allAtMs = nowMs + names.length * definitionRestMs;
  }
}

/** The cursor, after runs have become claimable of which none is before this. */
function lowered(floor: Floor, { priority, microseconds }: Claimable): Floor {
  if (floor === null) return null;
  const isBefore = priority < floor[0] || (priority === floor[0] && microseconds < floor[1]);
  return isBefore ? [priority, microseconds] : floor;
}
