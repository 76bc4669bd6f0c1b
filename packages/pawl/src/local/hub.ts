/**
 * What the clients and workers of one process tell each other about one database, so that nobody there waits for a
 * poll: work has come into a queue, a worker has a free slot for a run that is just being started or woken, a run has ended or
 * was cancelled, a message has become visible.
 * Hints only: whatever is lost here is found by polling. Never crosses processes.
 */

import type { Claimable, ClaimedRun, EndedRun } from "../store/store.js";
import type { Emitter, EventMap, EventName } from "../observe/events.js";
import { Clock } from "../timing/clock.js";

/** A worker of this process, as starts see it. */
export interface LocalWorker {
  /** Sets a slot aside for a run that is about to be inserted already claimed; null if there is none to give. */
  reserve(run: { name: string; version: number; queue: string }): Reservation | null;
  /** Sets a slot aside in each queue that has one free; null if none has. */
  offer(): Slots | null;
  /** Work may have come into this queue, or (null) into any. */
  nudge(queue: string | null): void;
  /** A run of this queue becomes due after this time. */
  expect(queue: string, delayMs: number): void;
  /** Runs have become claimable that may be older than what it last looked at. */
  lower(claimable: Claimable): void;
  /** A signal, or the result of a child, has come into the inbox of this run. */
  delivered(runId: string): void;
  /** This run was cancelled, durably. */
  cancel(runId: string, reason: string | undefined): void;
}

/** A slot set aside on one worker. Exactly one of its methods must be called. */
export interface Reservation {
  readonly workerId: string;
  /** The worker's ids of claims in flight: holds the id of this one while the insert is. */
  readonly claiming: Set<string>;
  /** The run is committed as claimed: execute it. */
  fill(run: ClaimedRun, claimId: string): void;
  /** Nothing came of it. */
  cancel(): void;
}

/** Slots set aside on one worker, one in each of its queues that has one to give. `close` must be called at the end. */
export interface Slots {
  readonly workerId: string;
  readonly queues: readonly string[];
  /** The worker's ids of claims in flight. */
  readonly claiming: Set<string>;
  /** A run of this queue is committed as claimed: execute it. At most once. */
  fill(queue: string, run: ClaimedRun, claimId: string): void;
  /** Gives back what was not filled. */
  close(): void;
}

export class Hub implements Emitter {
  readonly workers = new Set<LocalWorker>();
  /** Who is told what the clients of this process do. */
  readonly listeners = new Set<Emitter>();
  /** Prompts whoever waits for a time. */
  readonly clock = new Clock();
  readonly #waiting = new Map<string, Set<(ended: EndedRun) => void>>();
  readonly #receiving = new Map<string, Set<(isOld: boolean) => void>>();

  hears(name: EventName): boolean {
    for (const listener of this.listeners) if (listener.hears(name)) return true;
    return false;
  }

  /** Tells of something that a client has done, durably. */
  emit<Name extends EventName>(name: Name, event: EventMap[Name]): void {
    for (const listener of this.listeners) listener.emit(name, event);
  }

  /** Work has come into this queue, or (null) into some queue. */
  nudge(queue: string | null): void {
    for (const worker of this.workers) worker.nudge(queue);
  }

  expect(queue: string, delayMs: number): void {
    for (const worker of this.workers) worker.expect(queue, delayMs);
  }

  /** Runs have become claimable. */
  claimable(all: readonly Claimable[]): void {
    for (const one of all) for (const worker of this.workers) worker.lower(one);
  }

  /** A signal, or the result of a child, has come into the inbox of this run. */
  delivered(runId: string): void {
    for (const worker of this.workers) worker.delivered(runId);
  }

  /** A run was cancelled, durably. */
  cancel(runId: string, reason: string | undefined): void {
    for (const worker of this.workers) worker.cancel(runId, reason);
    const error = reason === undefined ? null : JSON.stringify({ name: "RunCancelled", message: reason });
    this.announce({ runId, phase: "cancelled", result: null, error });
  }

  /** A run of this database has ended, durably. */
  announce(ended: EndedRun): void {
    const waiting = this.#waiting.get(ended.runId);
    if (waiting === undefined) return;
    this.#waiting.delete(ended.runId);
    for (const tell of waiting) tell(ended);
  }

  /** Calls `tell` if the run ends in this process; the returned function takes that back. */
  await(runId: string, tell: (ended: EndedRun) => void): () => void {
    const waiting = this.#waiting.get(runId) ?? new Set();
    this.#waiting.set(runId, waiting.add(tell));
    return () => {
      waiting.delete(tell);
      if (waiting.size === 0 && this.#waiting.get(runId) === waiting) this.#waiting.delete(runId);
    };
  }

  /** Messages have become visible in this queue: new ones, or (`isOld`) some that were there before. */
  visible(queue: string, { isOld }: { isOld: boolean }): void {
    for (const tell of this.#receiving.get(queue) ?? []) tell(isOld);
  }

  /** Calls `tell` whenever messages become visible in a queue; the returned function takes that back. */
  receiving(queue: string, tell: (isOld: boolean) => void): () => void {
    const receiving = this.#receiving.get(queue) ?? new Set();
    this.#receiving.set(queue, receiving.add(tell));
    return () => {
      receiving.delete(tell);
      if (receiving.size === 0 && this.#receiving.get(queue) === receiving) this.#receiving.delete(queue);
    };
  }
}

const hubs = new Map<string, Hub>();

/** The one hub of this process for a database (see `addressKey`). */
export function hubOf(key: string): Hub {
  let hub = hubs.get(key);
  if (hub === undefined) hubs.set(key, (hub = new Hub()));
  return hub;
}
