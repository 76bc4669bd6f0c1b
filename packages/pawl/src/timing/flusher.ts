/**
 * Writes for many runs in groups: whatever was queued while the previous call was in flight goes in
 * one call, without any timer, so a lone write leaves at once and a thousand share a transaction.
 * Bad rows are isolated by the call itself; one that fails as a whole is sent again until it is
 * answered or dropped (after anything but an outage, item by item), which is logged once until a
 * call is answered: the guards in the SQL make a second arrival harmless. What is busy (somebody's
 * open transaction holds the run) moves to a slow lane and delays nobody. The items of one run are
 * sent in order, those of one call at a time. Used for the outcomes of runs (`commit`) and the
 * journals of workflows (`record`).
 */

import type { Logger } from "../values/logger.js";
import { RetryDelay } from "./retry-delay.js";

const maxBatch = 500;
const maxBatchBytes = 8 * 1024 * 1024;
const lanes = 2;
const slowLaneMs = 50;
const slowLaneMaxMs = 1_000;
/**
 * The longest pause after a call that failed as a whole, though the database could be reached: that
 * may last.
 */
const refusedMaxMs = 5_000;

interface Item {
  readonly runId: string;
}

interface Entry<I, V> {
  readonly item: I;
  readonly bytes: number;
  readonly resolve: (verdict: V) => void;
  dropped: boolean;
}

export interface FlusherOptions<I, V> {
  readonly logger: Logger;
  /** What is written, for the log. */
  readonly what: string;
  /** The verdict on what was dropped. */
  readonly stale: V;
  /** Sends items in one call and answers in the same order. */
  send(items: readonly I[], options: { patient: boolean }): Promise<readonly V[]>;
  sizeOf(item: I): number;
  isOutage(error: unknown): boolean;
  /** A write was answered that nobody waits for any more. */
  onLate?(item: I, verdict: V): void;
}

export class Flusher<I extends Item, V extends { readonly kind: string }> {
  readonly #options: FlusherOptions<I, V | { readonly kind: "busy" }>;
  #queue: Entry<I, V>[] = [];
  /** Every entry that is not answered yet, by run. */
  readonly #open = new Map<string, Set<Entry<I, V>>>();
  /** The runs that somebody holds, each with what waits for that to end, in order. */
  readonly #slow = new Map<string, Entry<I, V>[]>();
  /** The runs that have entries in flight, or in the slow lane. */
  readonly #flying = new Set<string>();
  #inFlight = 0;
  /** The last failure is in the log already. */
  #isTold = false;
  #scheduled = false;

  constructor(options: FlusherOptions<I, V | { readonly kind: "busy" }> & { readonly stale: V }) {
    this.#options = options;
  }

  /** Resolves when the item is written, or it is known that it never will be. */
  write(item: I): Promise<V> {
    return new Promise((resolve) => {
      const bytes = 100 + this.#options.sizeOf(item);
      const entry = { item, bytes, resolve, dropped: false };
      const open = this.#open.get(item.runId);
      if (open === undefined) this.#open.set(item.runId, new Set([entry]));
      else open.add(entry);
      this.#queue.push(entry);
      this.#schedule();
    });
  }

  /** Forgets what is queued for this run: its claim is lost. A call in flight is answered by the guard. */
  drop(runId: string): void {
    for (const entry of this.#open.get(runId) ?? []) {
      entry.dropped = true;
      this.#settle(entry, this.#options.stale as V);
    }
    if (this.#slow.delete(runId)) this.#flying.delete(runId);
  }

  /** Whether something of this run waits to be written. */
  has(runId: string): boolean {
    return this.#open.has(runId);
  }

  /** Forgets everything. */
  dropAll(): void {
    for (const runId of this.#open.keys()) this.drop(runId);
    this.#queue = [];
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlight >= lanes) return;
    this.#scheduled = true;
    // One turn of the event loop: the outcomes of all steps that are ready now go together.
    setImmediate(() => {
      this.#scheduled = false;
      const batch = this.#take();
      if (batch.length === 0) return;
      void this.#send(batch);
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  /** What goes together: of runs that have nothing in flight. */
  #take(): Entry<I, V>[] {
    const batch: Entry<I, V>[] = [];
    const left: Entry<I, V>[] = [];
    let bytes = 0;
    for (const entry of this.#queue) {
      if (entry.dropped) continue;
      const isFull = batch.length === maxBatch || (bytes + entry.bytes > maxBatchBytes && batch.length > 0);
      if (isFull || this.#flying.has(entry.item.runId)) {
        left.push(entry);
        continue;
      }
      bytes += entry.bytes;
      batch.push(entry);
    }
    this.#queue = left;
    for (const { item } of batch) this.#flying.add(item.runId);
    // In id order: the order in which every function locks.
    return batch.toSorted((one, other) => compareIds(one.item.runId, other.item.runId));
  }

  async #send(batch: Entry<I, V>[]): Promise<void> {
    this.#inFlight++;
    const retryDelay = new RetryDelay();
    let waiting = batch;
    while (waiting.length > 0) {
      try {
        const items = waiting.map((entry) => entry.item);
        const verdicts = await this.#options.send(items, { patient: true });
        this.#isTold = false;
        for (const [index, entry] of waiting.entries()) this.#answer(entry, verdicts[index]!);
        break;
      } catch (error) {
        this.#warn(error, waiting.length);
        if (!this.#options.isOutage(error)) {
          // Not the connection's fault: one by one, so that nobody waits for the one at fault.
          for (const entry of waiting) this.#answer(entry, { kind: "busy" });
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, retryDelay.next()));
        waiting = waiting.filter((entry) => !entry.dropped);
      }
    }
    for (const { item } of batch) if (!this.#slow.has(item.runId)) this.#flying.delete(item.runId);
    this.#inFlight--;
    if (this.#queue.length > 0) this.#schedule();
  }

  #answer(entry: Entry<I, V>, verdict: V | { readonly kind: "busy" }): void {
    if (entry.dropped) this.#options.onLate?.(entry.item, verdict);
    if (verdict.kind !== "busy") {
      this.#settle(entry, verdict as V);
      return;
    }
    const { runId } = entry.item;
    const waiting = this.#slow.get(runId);
    if (waiting !== undefined) {
      waiting.push(entry);
      return;
    }
    this.#slow.set(runId, [entry]);
    void this.#crawl(runId);
  }

  /** The slow lane of a run: one item at a time, in order, never waiting for its lock, outside the count of lanes. */
  async #crawl(runId: string): Promise<void> {
    const waiting = this.#slow.get(runId)!;
    let waitMs = slowLaneMs;
    let longestMs = slowLaneMaxMs;
    while (waiting.length > 0) {
      const [entry] = waiting as [Entry<I, V>];
      if (!entry.dropped) {
        await new Promise((resolve) => setTimeout(resolve, waitMs));
        waitMs = Math.min(Math.max(waitMs * 2, slowLaneMs), longestMs);
      }
      const verdict = entry.dropped ? null : await this.#sendAlone(entry);
      longestMs = verdict === "refused" ? refusedMaxMs : slowLaneMaxMs;
      if (verdict === "refused" || verdict?.kind === "busy") continue;
      waiting.shift();
      waitMs = 0;
      if (verdict !== null) this.#answer(entry, verdict);
    }
    if (this.#slow.get(runId) !== waiting) return;
    this.#slow.delete(runId);
    this.#flying.delete(runId);
    if (this.#queue.length > 0) this.#schedule();
  }

  async #sendAlone(entry: Entry<I, V>): Promise<V | { readonly kind: "busy" } | "refused"> {
    try {
      const [verdict] = await this.#options.send([entry.item], { patient: false });
      this.#isTold = false;
      return verdict!;
    } catch (error) {
      this.#warn(error, 1);
      return this.#options.isOutage(error) ? { kind: "busy" } : "refused";
    }
  }

  #warn(error: unknown, items: number): void {
    if (this.#isTold) return;
    this.#isTold = true;
    this.#options.logger.warn({ err: error, items }, `pawl: ${this.#options.what} failed, trying again`);
  }

  #settle(entry: Entry<I, V>, verdict: V): void {
    const open = this.#open.get(entry.item.runId);
    if (open?.delete(entry) === true && open.size === 0) this.#open.delete(entry.item.runId);
    entry.resolve(verdict);
  }
}

/** Ids are positive decimal numbers without leading zeros. */
function compareIds(one: string, other: string): number {
  return one.length - other.length || (one < other ? -1 : one > other ? 1 : 0);
}
