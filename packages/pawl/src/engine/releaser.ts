/**
 * Lets claims go without an outcome: of runs that were not begun, whose worker stops, that were cancelled, or that nobody
 * executes. What it misses (a locked row, an outage), a later beat or the reaper finds. Owned by the worker.
 */

import type { Logger } from "../define/logger.js";
import type { WorkerStore } from "../store/store.js";
import { atMost } from "./at-most.js";
import { Patience } from "./patience.js";

const longestMs = 2_000;
const tries = 4;

interface HeldClaim {
  readonly runId: string;
  readonly claimId: string;
}

export class Releaser {
  readonly #store: Pick<WorkerStore, "release">;
  readonly #logger: Logger;
  /** Runs, or the next in line for their keys, have become claimable. */
  readonly #onReleased: () => void;

  constructor(store: Pick<WorkerStore, "release">, logger: Logger, onReleased: () => void) {
    this.#store = store;
    this.#logger = logger;
    this.#onReleased = onReleased;
  }

  /** Lets claims go and does not wait for it. */
  release(claims: readonly HeldClaim[]): void {
    if (claims.length === 0) return;
    this.#store.release(claims).then(this.#onReleased, (error: unknown) => {
      this.#logger.warn({ err: error, runs: claims.length }, "pawl: claims could not be let go");
    });
  }

  /** Lets claims go and waits for it, but not for ever. */
  async letGo(claims: readonly HeldClaim[]): Promise<void> {
    if (claims.length > 0) await atMost(this.#store.release(claims), longestMs);
  }

  /** Lets a run go although somebody may have it locked just now: who cancels it, or a transaction that is about to end. */
  async persist({ runId, claimId }: HeldClaim): Promise<void> {
    const patience = new Patience();
    for (let count = 0; count < tries; count++) {
      const released = await this.#store.release([{ runId, claimId }]).catch(() => []);
      if (released.length > 0) break;
      await new Promise((resolve) => setTimeout(resolve, patience.next()));
    }
    this.#onReleased();
  }
}
