/**
 * The services that an execution uses of the worker it runs in: reads, the two batchers that write,
 * whom it tells, and the state of the worker. Made by the worker, once.
 */

import type { Hub } from "../local/hub.js";
import type { Observer } from "../observe/observer.js";
import type { JournalEntry, RecordVerdict } from "../store/journal.js";
import type { Commit, Verdict, WorkerStore } from "../store/store.js";
import type { Batcher } from "../timing/batch.js";
import type { Logger } from "../values/logger.js";

/** For how long a run, or runs of one key handed over, may keep a slot while others wait. */
export const sliceSteps = 100;
export const sliceMs = 1_000;

/** The batchers repeat locked rows until they are answered. */
export type CommitVerdict = Exclude<Verdict, { kind: "busy" }>;
export type JournalVerdict = Exclude<RecordVerdict, { kind: "busy" }>;

/** The claimer of a queue. */
export interface QueueClaimer {
  readonly queue: string;
  /** More runs are due than there are slots. */
  readonly hasBacklog: boolean;
  /** It claims more runs, because enough slots are free. */
  readonly isClaiming: boolean;
  /** The outcome of a run is being written, and then its slot is free. */
  endBegins(): void;
  /** The outcome is written. */
  endIsOver(): void;
  /** Frees the slot of a run whose code has not returned. */
  leave(): void;
  /** A run of the queue becomes due after this time. */
  expect(delayMs: number): void;
}

/** The worker as its executions see it. */
export interface WorkerState {
  /** The id to claim under; null while the worker has no lease. */
  workerId(): string | null;
  /** The ids of claims in flight: a heartbeat must not release them. */
  readonly claiming: Set<string>;
  /** The worker begins no further steps. */
  isStopping(): boolean;
}

/** Tells a workflow whose body is alive of signals that arrive for it. */
interface InboxListeners {
  watch(runId: string, listener: (inboxSeq: number) => void): void;
  forget(runId: string): void;
}

export interface WorkerServices {
  readonly store: Pick<WorkerStore, "inbox" | "children" | "journal" | "begin" | "paused" | "failOverdue">;
  readonly commits: Batcher<Commit, CommitVerdict>;
  readonly journal: Batcher<JournalEntry, JournalVerdict>;
  readonly inboxes: InboxListeners;
  readonly hub: Hub;
  readonly observer: Observer;
  readonly logger: Logger;
  /** Whether recorded errors have their stacks. */
  readonly recordStacks: boolean;
  readonly limits: { readonly maxStepMs: number | null; readonly maxPayloadBytes: number };
  readonly worker: WorkerState;
}
