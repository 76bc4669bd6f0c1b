/**
 * Starts runs for callers of this process. Starts that come while a call is in flight share the next one, like
 * commits do, and none of them waits for another's key. A run that a worker of this process serves and has a free slot for is inserted already claimed and
 * handed over once the insert is committed: it never waits for a claim. Used by the client.
 */

import type { ClientStore, NewRun, StartedRun } from "../store/store.js";
import { newClaimId } from "./claim-id.js";
import type { Hub, Reservation } from "./nudge.js";

const maxBatch = 500;
const maxBatchBytes = 8 * 1024 * 1024;

interface Waiting {
  readonly run: NewRun;
  readonly resolve: (started: StartedRun) => void;
  readonly reject: (error: unknown) => void;
}

export class Starter {
  readonly #store: ClientStore;
  readonly #hub: Hub;
  readonly #isOutage: (error: unknown) => boolean;
  #queue: Waiting[] = [];
  #busy = false;

  constructor(store: ClientStore, hub: Hub, isOutage: (error: unknown) => boolean) {
    this.#store = store;
    this.#hub = hub;
    this.#isOutage = isOutage;
  }

  /** Starts one run, together with whatever else this process starts just now. */
  start(run: NewRun): Promise<StartedRun> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ run, resolve, reject });
      if (this.#busy) return;
      this.#busy = true;
      setImmediate(() => void this.#pump());
    });
  }

  /** Starts all of them in one statement, or, if their keys conflict, none. */
  startMany(runs: readonly NewRun[]): Promise<StartedRun[]> {
    return this.#send(runs, true);
  }

  async #pump(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#take();
      try {
        const started = await this.#send(
          batch.map(({ run }) => run),
          false,
        );
        for (const [index, { resolve }] of batch.entries()) resolve(started[index]!);
      } catch (error) {
        if (this.#isOutage(error)) {
          for (const { reject } of batch) reject(error);
        } else {
          // One of them was refused, or waits for a key that an open transaction holds, and nothing was written: each
          // by itself, so that it fails or waits alone.
          for (const { run, resolve, reject } of batch) {
            void this.#send([run], true).then(([started]) => resolve(started!), reject);
          }
        }
      }
    }
    this.#busy = false;
  }

  #take(): Waiting[] {
    let bytes = 0;
    const tooMany = this.#queue.findIndex(({ run }, index) => {
      bytes += run.input.length;
      return index === maxBatch || (bytes > maxBatchBytes && index > 0);
    });
    return this.#queue.splice(0, tooMany === -1 ? this.#queue.length : tooMany);
  }

  async #send(given: readonly NewRun[], allOrNothing: boolean): Promise<StartedRun[]> {
    const slots = new Map<number, Reservation>();
    let first: Reservation | undefined;
    const runs = given.map((run, index) => {
      const slot = this.#reserve(run, first?.workerId);
      if (slot === null) return run;
      first ??= slot;
      slots.set(index, slot);
      return { ...run, direct: true };
    });
    const claimId = first === undefined ? "" : newClaimId();
    first?.claiming.add(claimId);
    try {
      const claim = first === undefined ? null : { workerId: first.workerId, claimId };
      const started = await this.#store.start(runs, { allOrNothing, claim });
      this.#handOver(runs, started, slots, claimId);
      return started;
    } catch (error) {
      for (const slot of slots.values()) slot.cancel();
      throw error;
    } finally {
      first?.claiming.delete(claimId);
    }
  }

  /** A slot on a worker of this process, for a run that may begin at once. One call claims for one worker only. */
  #reserve(run: NewRun, workerId: string | undefined): Reservation | null {
    const { name, version, queue } = run;
    if (version === null || queue === null || run.delayMs !== null || run.at !== null) return null;
    // A scope of its own may tell runnable and executing apart: such a run must be runnable first.
    if (run.uniqueScope !== null) return null;
    for (const worker of this.#hub.workers) {
      const slot = worker.reserve({ name, version, queue });
      if (slot === null) continue;
      if (workerId === undefined || slot.workerId === workerId) return slot;
      slot.cancel();
    }
    return null;
  }

  #handOver(
    runs: readonly NewRun[],
    started: readonly StartedRun[],
    slots: ReadonlyMap<number, Reservation>,
    claimId: string,
  ): void {
    const nudged = new Set<string>();
    for (const [index, run] of runs.entries()) {
      const { runId, created } = started[index]!;
      const slot = slots.get(index);
      if (slot === undefined) {
        const delayMs = run.delayMs ?? (run.at === null ? 0 : run.at.getTime() - Date.now());
        if (!created || run.queue === null) continue;
        if (delayMs <= 0) nudged.add(run.queue);
        else this.#hub.expect(run.queue, delayMs);
      } else if (!created) {
        slot.cancel();
      } else {
        const { name, input, step } = run;
        const rest = { priority: run.priority ?? 0, attempt: 0, crashes: 0, state: null, uniqueLost: false };
        slot.fill({ runId, name, version: run.version!, step, input, ...rest }, claimId);
      }
    }
    for (const queue of nudged) this.#hub.nudge(queue);
  }
}
