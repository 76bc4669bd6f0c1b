/**
 * Slots of a worker that are set aside for runs which come claimed from elsewhere than its claimers: from a start in this process, or from
 * a signal that wakes one. Owned by the worker.
 */

import type { ClaimedRun } from "../store/store.js";
import type { Claimer } from "./claimer.js";
import type { Reservation, Slots } from "../local/hub.js";

export interface SlotHost {
  /** The worker's ids of claims in flight. */
  readonly claiming: Set<string>;
  /** Whether a claim of this worker id may be executed now. */
  mayFill(workerId: string): boolean;
  letGo(claim: { readonly runId: string; readonly claimId: string }): Promise<void>;
  /** A slot is not set aside any more. */
  onReturned(): void;
}

export class SlotKeeper {
  readonly #host: SlotHost;
  #reserved = 0;

  constructor(host: SlotHost) {
    this.#host = host;
  }

  /** No slot is set aside. */
  get isIdle(): boolean {
    return this.#reserved === 0;
  }

  /** One slot; null if there is none to give. */
  reserve(workerId: string | null, claimer: Claimer | undefined): Reservation | null {
    if (workerId === null || claimer === undefined || !claimer.reserve()) return null;
    this.#reserved++;
    return {
      workerId,
      claiming: this.#host.claiming,
      fill: (run, claimId) => this.#fill(claimer, workerId, run, claimId),
      cancel: () => this.#giveBack(claimer),
    };
  }

  /** One slot in each queue that has one free; null if none has. */
  offer(workerId: string | null, claimers: ReadonlyMap<string, Claimer>): Slots | null {
    if (workerId === null) return null;
    const free = new Map([...claimers].filter(([, claimer]) => claimer.reserve()));
    if (free.size === 0) return null;
    this.#reserved += free.size;
    return {
      workerId,
      queues: [...free.keys()],
      claiming: this.#host.claiming,
      fill: (queue, run, claimId) => {
        this.#fill(free.get(queue)!, workerId, run, claimId);
        free.delete(queue);
      },
      close: () => {
        for (const claimer of free.values()) this.#giveBack(claimer);
      },
    };
  }

  /** Executes a run in a slot that was set aside for it; if the worker may not any more, the claim is let go. */
  #fill(claimer: Claimer, workerId: string, run: ClaimedRun, claimId: string): void {
    if (this.#host.mayFill(workerId)) {
      void claimer.fill(run, claimId);
      this.#reserved--;
      this.#host.onReturned();
    } else {
      void this.#host.letGo({ runId: run.runId, claimId }).then(() => this.#giveBack(claimer));
    }
  }

  #giveBack(claimer: Claimer): void {
    claimer.unreserve();
    this.#reserved--;
    this.#host.onReturned();
  }
}
