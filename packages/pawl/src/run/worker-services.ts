/** What an execution needs of the worker it runs in. Made by the worker, used by the executor and by `commit.ts`. */

import type { Logger } from "../values/logger.js";
import type { JournalEntry, RecordVerdict } from "../store/journal.js";
import type { Commit, Verdict, WorkerStore } from "../store/store.js";
import type { Execution } from "./execution.js";
import type { Batcher } from "../timing/batch.js";
import type { Hub } from "../local/hub.js";
import type { Observer } from "../observe/observer.js";

/** For how long a run, or runs of one key handed over, may keep a slot while others wait. */
export const sliceSteps = 100;
export const sliceMs = 1_000;

/** Locked rows are repeated until they are answered. */
export type CommitVerdict = Exclude<Verdict, { kind: "busy" }>;
export type JournalVerdict = Exclude<RecordVerdict, { kind: "busy" }>;

/** The slots of a queue. */
interface QueueSlots {
  /** More runs are due than there are slots. */
  readonly hasBacklog: boolean;
  /** It polls for more runs, because enough slots are free. */
  readonly isLooking: boolean;
  /** The outcome of a run is being written, and then its slot is free. */
  endBegins(): void;
  /** It is written. */
  endIsOver(): void;
}

/** Tells a workflow whose body is alive of signals that arrive for it. */
interface InboxWatch {
  watch(runId: string, hear: (inboxSeq: number) => void): void;
  forget(runId: string): void;
}

export interface Surroundings {
  readonly store: Pick<WorkerStore, "inbox" | "children" | "journal" | "begin">;
  readonly commits: Batcher<Commit, CommitVerdict>;
  readonly journal: Batcher<JournalEntry, JournalVerdict>;
  readonly watcher: InboxWatch;
  readonly hub: Hub;
  readonly observer: Observer;
  readonly logger: Logger;
  readonly maxStepMs: number | null;
  readonly maxPayloadBytes: number;
  /** The id to claim under; null while the worker has no lease. */
  workerId(): string | null;
  /** The ids of claims in flight: what they hold is not to be let go by a beat. */
  readonly claiming: Set<string>;
  /** The claimer of a queue, used to ask for its backlog and to announce slots that will be free. */
  claimer(queue: string): QueueSlots | undefined;
  /** A run of this queue becomes due again after this time. */
  expect(queue: string, delayMs: number): void;
  /**
   * Reads something for a run, or begins a transaction: an outage or a refusal only delays it.
   * Undefined: the claim is lost.
   */
  patiently<T>(execution: Execution, read: () => Promise<T>): Promise<T | undefined>;
  /** The worker begins no further steps. */
  isStopping(): boolean;
}
