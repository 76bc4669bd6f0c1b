/**
 * Commits transitions in groups: whatever was queued while the previous call was in flight goes in one call, without
 * any timer, so a lone commit leaves at once and a thousand share a transaction. Bad rows are isolated by the call
 * itself; one that fails as a whole is sent again until it is answered or dropped (after anything but an outage, run by
 * run): its turn makes a second arrival harmless. What is busy (somebody's open
 * transaction holds the run) moves to a slow lane and delays nobody. Used by the executor; guards are in the SQL.
 */

import type { Logger } from "../define/logger.js";
import type { Claimable, Commit, Verdict, WorkerStore } from "../store/store.js";
import { Patience } from "./patience.js";

const maxBatch = 500;
const maxBatchBytes = 8 * 1024 * 1024;
const lanes = 2;
const slowLaneMs = 50;
const slowLaneMaxMs = 1_000;

interface Entry {
  readonly commit: Commit;
  readonly bytes: number;
  readonly resolve: (verdict: Verdict) => void;
  dropped: boolean;
  busyMs: number;
}

const stale: Verdict = { kind: "stale" };

export interface FlusherOptions {
  readonly store: Pick<WorkerStore, "commit">;
  readonly logger: Logger;
  isOutage(error: unknown): boolean;
  /** A commit has made other runs claimable: parents of ended children, the next in line for a key. */
  onClaimable(claimable: readonly Claimable[]): void;
  /** A run was handed over by a commit that nobody waits for any more. */
  onOrphan(orphan: { readonly runId: string; readonly claimId: string }): void;
}

export class Flusher {
  readonly #options: FlusherOptions;
  #queue: Entry[] = [];
  /** Every entry that is not answered yet, by run: at most one each. */
  readonly #open = new Map<string, Entry>();
  #inFlight = 0;
  #scheduled = false;

  constructor(options: FlusherOptions) {
    this.#options = options;
  }

  /** Resolves when the transition is committed, or it is known that it never will be. */
  commit(commit: Commit): Promise<Verdict> {
    return new Promise((resolve) => {
      const entry = { commit, bytes: sizeOf(commit), resolve, dropped: false, busyMs: slowLaneMs };
      this.#open.set(commit.runId, entry);
      this.#queue.push(entry);
      this.#schedule();
    });
  }

  /** Forgets what is queued for this run: its claim is lost. A call in flight is answered by the guard. */
  drop(runId: string): void {
    const entry = this.#open.get(runId);
    if (entry === undefined) return;
    entry.dropped = true;
    this.#settle(entry, stale);
  }

  /** Whether an outcome of this run waits to be committed. */
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
      if (batch.length > 0) void this.#send(batch, true);
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  #take(): Entry[] {
    const batch: Entry[] = [];
    let bytes = 0;
    let taken = 0;
    for (const entry of this.#queue) {
      if (batch.length === maxBatch || (bytes + entry.bytes > maxBatchBytes && batch.length > 0)) break;
      taken++;
      if (entry.dropped) continue;
      bytes += entry.bytes;
      batch.push(entry);
    }
    this.#queue = this.#queue.slice(taken);
    // In id order: the order in which every function locks.
    return batch.toSorted((one, other) => compareIds(one.commit.runId, other.commit.runId));
  }

  async #send(batch: Entry[], patient: boolean): Promise<void> {
    this.#inFlight++;
    const patience = new Patience();
    let waiting = batch;
    while (waiting.length > 0) {
      try {
        const { verdicts, claimable } = await this.#options.store.commit(
          waiting.map((entry) => entry.commit),
          { patient },
        );
        if (claimable.length > 0) this.#options.onClaimable(claimable);
        for (const [index, entry] of waiting.entries()) this.#answer(entry, verdicts[index]!);
        break;
      } catch (error) {
        this.#warn(error, waiting.length);
        if (!this.#options.isOutage(error)) {
          // Not the connection's fault: one by one, so that nobody waits for the one at fault.
          for (const entry of waiting) this.#answer(entry, { kind: "busy" });
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, patience.next()));
        waiting = waiting.filter((entry) => !entry.dropped);
      }
    }
    this.#inFlight--;
    if (this.#queue.length > 0) this.#schedule();
  }

  #answer(entry: Entry, verdict: Verdict): void {
    if (entry.dropped && verdict.kind === "committed" && verdict.handed !== null) {
      this.#options.onOrphan({ runId: verdict.handed.runId, claimId: entry.commit.next!.claimId });
    }
    if (verdict.kind !== "busy") {
      this.#settle(entry, verdict);
      return;
    }
    const waitMs = entry.busyMs;
    entry.busyMs = Math.min(waitMs * 2, slowLaneMaxMs);
    setTimeout(() => {
      if (!entry.dropped) void this.#sendSlow(entry);
    }, waitMs);
  }

  /** The slow lane: one run by itself, never waiting for its lock, outside the count of lanes. */
  async #sendSlow(entry: Entry): Promise<void> {
    try {
      const { verdicts, claimable } = await this.#options.store.commit([entry.commit], { patient: false });
      if (claimable.length > 0) this.#options.onClaimable(claimable);
      this.#answer(entry, verdicts[0]!);
    } catch (error) {
      this.#warn(error, 1);
      this.#answer(entry, { kind: "busy" });
    }
  }

  #warn(error: unknown, runs: number): void {
    this.#options.logger.warn({ err: error, runs }, "pawl: commit failed, trying again");
  }

  #settle(entry: Entry, verdict: Verdict): void {
    if (this.#open.get(entry.commit.runId) === entry) this.#open.delete(entry.commit.runId);
    entry.resolve(verdict);
  }
}

function sizeOf({ transition }: Commit): number {
  const state = "state" in transition ? (transition.state?.length ?? 0) : 0;
  const result = "result" in transition ? transition.result.length : 0;
  let children = 0;
  if (transition.kind === "spawn")
    for (const child of transition.children) children += 300 + child.input.length;
  return 100 + state + result + children;
}

/** Ids are positive decimal numbers without leading zeros. */
function compareIds(one: string, other: string): number {
  return one.length - other.length || (one < other ? -1 : 1);
}
