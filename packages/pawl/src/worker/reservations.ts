/**
 * Slots of a worker that are reserved for runs which arrive already claimed: from a start in this
 * process, or from a signal that wakes a run. Owned by the worker.
 */

import type { Reservation, Slots } from "../local/hub.js";
import type { ClaimedRun } from "../store/store.js";
import type { Claimer } from "./claimer.js";
import type { HeldClaim } from "./release.js";

export interface ReservationsHost {
  /** The worker's ids of claims in flight. */
  readonly claiming: Set<string>;
  /** Whether a claim of this worker id may be executed now. */
  mayFill(workerId: string): boolean;
  release(claim: HeldClaim): Promise<void>;
  /** A reservation has ended. */
  onEnded(): void;
}

export class Reservations {
  readonly #host: ReservationsHost;
  #count = 0;

  constructor(host: ReservationsHost) {
    this.#host = host;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Reserves one slot; null if there is none to give. */
  reserve(workerId: string | null, claimer: Claimer | undefined): Reservation | null {
    if (workerId === null || claimer === undefined || !claimer.reserve()) return null;
    this.#count++;
    return {
      workerId,
      claiming: this.#host.claiming,
      fill: (run, claimId) => this.#fill(claimer, workerId, run, claimId),
      cancel: () => this.#cancel(claimer),
    };
  }

  /** Reserves one slot in each queue that has one free; null if none has. */
  reserveEach(workerId: string | null, claimers: ReadonlyMap<string, Claimer>): Slots | null {
    if (workerId === null) return null;
    const free = new Map([...claimers].filter(([, claimer]) => claimer.reserve()));
    if (free.size === 0) return null;
    this.#count += free.size;
    return {
      workerId,
      queues: [...free.keys()],
      claiming: this.#host.claiming,
      fill: (queue, run, claimId) => {
        this.#fill(free.get(queue)!, workerId, run, claimId);
        free.delete(queue);
      },
      close: () => {
        for (const claimer of free.values()) this.#cancel(claimer);
      },
    };
  }

  /** Executes a run in its reserved slot. If the worker may not, it releases the claim. */
  #fill(claimer: Claimer, workerId: string, run: ClaimedRun, claimId: string): void {
    if (this.#host.mayFill(workerId)) {
      claimer.slots.fill(run, claimId);
      this.#end();
    } else {
      void this.#host.release({ runId: run.runId, claimId }).then(() => this.#cancel(claimer));
    }
  }

  #cancel(claimer: Claimer): void {
    claimer.slots.release();
    this.#end();
  }

  #end(): void {
    this.#count--;
    this.#host.onEnded();
  }
}
