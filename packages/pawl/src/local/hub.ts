/**
 * The hub of a database in this process: its clients and workers tell each other what has happened,
 * so that nobody there waits for a poll. Work arrived in a queue; a worker has a free slot for a
 * run that a client starts or wakes; a run ended or was cancelled; a message became visible. These
 * are hints only: polling finds everything that a hint missed. Never crosses processes.
 */

import type { EndedRun } from "../store/client-store.js";
import type { Claimable, ClaimedRun } from "../store/runs.js";
import type { OverdueRun } from "../store/worker-store.js";
import type { Emitter, EventMap, EventName } from "../observe/events.js";
import { Clock } from "../timing/clock.js";

/** A worker of this process, as the hub sees it. */
export interface LocalWorker {
  /** Reserves a slot for a run that is about to be inserted already claimed; null: none is free. */
  reserve(run: { name: string; version: number; queue: string }): Reservation | null;
  /** Reserves one slot in each queue that has a free one; null: none has. */
  offer(): Slots | null;
  /** Work may have arrived in this queue, or (null) in any queue. */
  hint(queue: string | null): void;
  /** A run of this queue becomes due after this time. */
  expect(queue: string, delayMs: number): void;
  /** Runs became claimable that may come before the point where the last claim stopped. */
  lower(claimable: Claimable): void;
  /** A signal, or the result of a child, arrived in the inbox of this run. */
  delivered(runId: string): void;
  /** This run is cancelled, durably. */
  cancel(runId: string, reason: string | undefined): void;
  /** This run has failed by its deadline, durably. */
  overdue(runId: string): void;
}

/** A reserved slot of one worker. The caller must call exactly one of its methods. */
export interface Reservation {
  readonly workerId: string;
  /** The worker's claim ids in flight. It contains the id of this claim during the insert. */
  readonly claiming: Set<string>;
  /** The run is committed as claimed: execute it. */
  fill(run: ClaimedRun, claimId: string): void;
  /** The slot is not needed. */
  cancel(): void;
}

/**
 * Reserved slots of one worker, one in each queue that had a free one. The caller must call `close`
 * at the end.
 */
export interface Slots {
  readonly workerId: string;
  readonly queues: readonly string[];
  /** The worker's claim ids in flight. */
  readonly claiming: Set<string>;
  /** A run of this queue is committed as claimed: execute it. At most once. */
  fill(queue: string, run: ClaimedRun, claimId: string): void;
  /** Frees the slots that were not filled. */
  close(): void;
}

export class Hub implements Emitter {
  readonly workers = new Set<LocalWorker>();
  /** Receive the events of the clients of this process. */
  readonly listeners = new Set<Emitter>();
  /** Wakes everything in this process that waits for a time. */
  readonly clock = new Clock();
  readonly #awaited = new Map<string, Set<(ended: EndedRun) => void>>();
  readonly #firers = new Set<() => void>();
  readonly #receivers = new Map<string, Set<(isOld: boolean) => void>>();

  hears(name: EventName): boolean {
    for (const listener of this.listeners) if (listener.hears(name)) return true;
    return false;
  }

  /** A client of this process did this, durably. */
  emit<Name extends EventName>(name: Name, event: EventMap[Name]): void {
    for (const listener of this.listeners) listener.emit(name, event);
  }

  /** Work may have arrived in this queue, or (null) in any queue. */
  hint(queue: string | null): void {
    for (const worker of this.workers) worker.hint(queue);
  }

  /** A run of this queue becomes due after this time. */
  expect(queue: string, delayMs: number): void {
    for (const worker of this.workers) worker.expect(queue, delayMs);
  }

  /** Runs became claimable. */
  claimable(all: readonly Claimable[]): void {
    for (const one of all) for (const worker of this.workers) worker.lower(one);
  }

  /** A signal, or the result of a child, arrived in the inbox of this run. */
  delivered(runId: string): void {
    for (const worker of this.workers) worker.delivered(runId);
  }

  /** This run is cancelled, durably. */
  cancel(runId: string, reason: string | undefined): void {
    for (const worker of this.workers) worker.cancel(runId, reason);
    const error = reason === undefined ? null : JSON.stringify({ name: "RunCancelled", message: reason });
    this.announce({ runId, phase: "cancelled", result: null, error });
  }

  /** These runs have failed by their deadline, durably. */
  overdue(failed: readonly OverdueRun[]): void {
    for (const { runId, parentId, error } of failed) {
      for (const worker of this.workers) worker.overdue(runId);
      if (parentId !== null) this.delivered(parentId);
      this.announce({ runId, phase: "failed", result: null, error });
    }
  }

  /** A run has ended, durably. */
  announce(ended: EndedRun): void {
    const tells = this.#awaited.get(ended.runId);
    if (tells === undefined) return;
    this.#awaited.delete(ended.runId);
    for (const tell of tells) tell(ended);
  }

  /** Calls `tell` if the run ends in this process. Returns a function that takes it back. */
  onEnd(runId: string, tell: (ended: EndedRun) => void): () => void {
    return subscribe(this.#awaited, runId, tell);
  }

  /** Messages became visible in this queue: new ones, or (`isOld`) some that were there before. */
  visible(queue: string, { isOld }: { isOld: boolean }): void {
    for (const tell of this.#receivers.get(queue) ?? []) tell(isOld);
  }

  /** A schedule was set or resumed: it may be due before all others. */
  scheduled(): void {
    for (const tell of this.#firers) tell();
  }

  /** Calls `tell` whenever a schedule was set or resumed. Returns a function that takes it back. */
  onScheduled(tell: () => void): () => void {
    this.#firers.add(tell);
    return () => this.#firers.delete(tell);
  }

  /**
   * Calls `tell` whenever messages become visible in a queue. Returns a function that takes it
   * back.
   */
  onVisible(queue: string, tell: (isOld: boolean) => void): () => void {
    return subscribe(this.#receivers, queue, tell);
  }
}

function subscribe<Tell>(all: Map<string, Set<Tell>>, key: string, tell: Tell): () => void {
  const tells = all.get(key) ?? new Set();
  all.set(key, tells.add(tell));
  return () => {
    tells.delete(tell);
    if (tells.size === 0 && all.get(key) === tells) all.delete(key);
  };
}

const hubs = new Map<string, Hub>();

/** The hub of this process for a database (see `addressKey`) or a server (its URL). */
export function hubOf(key: string): Hub {
  let hub = hubs.get(key);
  if (hub === undefined) hubs.set(key, (hub = new Hub()));
  return hub;
}
