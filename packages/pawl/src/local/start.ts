/**
 * Starts runs for callers of this process. Starts that happen together share one call, and none of
 * them waits for the key of another. If a worker of this process serves the run and has a free
 * slot, the run is inserted already claimed and handed over after the commit, so it waits for no
 * poll. Used by the Postgres transport and the server.
 */

import type { ClaimExtra, ClientStore, NewRun, RareOptions, StartedRun } from "../store/store.js";
import { newClaimId } from "../values/claim-id.js";
import { Batcher } from "../timing/batch.js";
import type { ErrorKinds, LockLanes } from "../timing/slow-lanes.js";
import type { Hub, Reservation } from "./hub.js";
import { RegisteredNames } from "./registered-names.js";
import { startTraced } from "../observe/tracing.js";

/** The members that every new run has in common. */
const freshRun = {
  attempt: 0,
  crashes: 0,
  parentId: null,
  partitionKey: null,
  timedOut: false,
  children: null,
  inboxSeq: 0,
  inbox: [],
  state: null,
  journal: [],
  waiting: [],
  uniqueLost: false,
  extra: null,
} as const;

export class Starter {
  readonly #store: Pick<ClientStore, "start">;
  readonly #names: RegisteredNames;
  readonly #hub: Hub;
  readonly #group: Batcher<NewRun, StartedRun>;
  readonly #lanes: LockLanes;

  constructor(
    store: Pick<ClientStore, "start" | "unregistered">,
    hub: Hub,
    { lanes, ...errors }: ErrorKinds & { readonly lanes: LockLanes },
  ) {
    this.#store = store;
    this.#names = new RegisteredNames(store);
    this.#hub = hub;
    this.#lanes = lanes;
    this.#group = new Batcher({
      ...errors,
      send: (runs) => this.#send(runs, false),
      sizeOf: (run) => run.input.length,
    });
  }

  /** Starts one run, together with others that this process starts at the same time. */
  async start(run: NewRun): Promise<StartedRun> {
    const started = await startTraced([run], ([traced]) => this.#group.add(traced!));
    if (this.#names.isKnown(run)) return started;
    const unregistered = await this.#names.ask(run.name);
    return unregistered === undefined ? started : { ...started, unregistered };
  }

  /** Starts all runs in one statement, or none if their keys conflict. */
  async startMany(runs: readonly NewRun[]): Promise<StartedRun[]> {
    const started = await startTraced(runs, (traced) => this.#lanes.run(() => this.#send(traced, true)));
    if (runs.every((run) => this.#names.isKnown(run))) return started;
    const missing = await this.#names.missing(runs);
    return started.map((one, index) => ({ ...one, unregistered: missing.get(runs[index]!.name) }));
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
      this.#emitStarted(runs, started);
      return started;
    } catch (error) {
      for (const slot of slots.values()) slot.cancel();
      throw error;
    } finally {
      first?.claiming.delete(claimId);
    }
  }

  /**
   * Reserves a slot on a worker of this process for a run that may begin at once. One call claims
   * for one worker only.
   */
  #reserve(run: NewRun, workerId: string | undefined): Reservation | null {
    const { name, version, queue } = run;
    if (version === null || queue === null || run.delayMs !== null || run.at !== null) return null;
    // A unique scope may distinguish runnable from executing, so such a run must be runnable first.
    if (run.uniqueScope !== null) return null;
    // Only a claim decides which run gets a key or a token.
    if (run.partitionKey !== null || run.rateLimit !== null) return null;
    // Only a claim gives slots of concurrency limits; a debounced run waits.
    if (run.options?.concurrency !== undefined || run.options?.debounce !== undefined) return null;
    for (const worker of this.#hub.workers) {
      const slot = worker.reserve({ name, version, queue });
      if (slot === null) continue;
      if (workerId === undefined || slot.workerId === workerId) return slot;
      slot.cancel();
    }
    return null;
  }

  #emitStarted(runs: readonly NewRun[], started: readonly StartedRun[]): void {
    if (!this.#hub.hears("run.started")) return;
    for (const [index, { runId, created }] of started.entries()) {
      const { name, version } = runs[index]!;
      if (created) this.#hub.emit("run.started", { runId, name, version, parentId: null });
    }
  }

  #handOver(
    runs: readonly NewRun[],
    started: readonly StartedRun[],
    slots: ReadonlyMap<number, Reservation>,
    claimId: string,
  ): void {
    const hinted = new Set<string | null>();
    for (const [index, run] of runs.entries()) {
      const { runId, created, phase } = started[index]!;
      const slot = slots.get(index);
      // In a held database, a start claims nothing.
      if (slot !== undefined && created && phase !== "executing") {
        slot.cancel();
      } else if (slot === undefined) {
        const delayMs =
          run.delayMs ??
          run.options?.debounce?.delayMs ??
          (run.at === null ? 0 : run.at.getTime() - Date.now());
        if (!created) continue;
        // For a start by name, only the database knows the queue.
        if (delayMs <= 0) hinted.add(run.queue);
        else if (run.queue !== null) this.#hub.expect(run.queue, delayMs);
      } else if (!created) {
        slot.cancel();
      } else {
        const { name, input, step, trace } = run;
        const priority = run.priority ?? 0;
        slot.fill(
          {
            ...freshRun,
            runId,
            name,
            version: run.version!,
            step,
            input,
            priority,
            trace,
            startedMs: Date.now(),
            extra: run.options && extraOf(run.options),
          },
          claimId,
        );
      }
    }
    if (hinted.has(null)) this.#hub.hint(null);
    else for (const queue of hinted) this.#hub.hint(queue);
  }
}

/** The `extra` that a claim of a run with these options would return. */
function extraOf({ tags, timeoutMs }: RareOptions): ClaimExtra {
  return {
    ...(tags === undefined ? {} : { tags }),
    ...(timeoutMs === undefined ? {} : { deadlineMs: timeoutMs }),
  };
}
