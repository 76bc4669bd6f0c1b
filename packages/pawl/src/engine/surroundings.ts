/** What an execution needs of the worker it runs in. Made by the worker, used by the executor and by `commit.ts`. */

import type { Logger } from "../define/logger.js";
import type { JournalEntry, RecordVerdict } from "../store/journal.js";
import type { Commit, Verdict, WorkerStore } from "../store/store.js";
import type { Execution } from "./execution.js";
import type { Feeder } from "./feeder.js";
import type { Flusher } from "./flusher.js";
import type { Hub } from "./nudge.js";
import type { Observer } from "./observer.js";
import type { Watcher } from "./watcher.js";

/** For how long a run, or runs of one key handed over, may keep a slot while others wait. */
export const sliceSteps = 100;
export const sliceMs = 1_000;

export interface Surroundings {
  readonly store: Pick<WorkerStore, "inbox" | "children" | "journal" | "begin">;
  readonly flusher: Flusher<Commit, Verdict>;
  readonly recorder: Flusher<JournalEntry, RecordVerdict>;
  readonly watcher: Watcher;
  readonly hub: Hub;
  readonly observer: Observer;
  readonly logger: Logger;
  readonly maxStepMs: number | null;
  readonly maxPayloadBytes: number;
  /** The id to claim under; null while the worker has no lease. */
  workerId(): string | null;
  /** The ids of claims in flight: what they hold is not to be let go by a beat. */
  readonly claiming: Set<string>;
  /** The feeder of a queue, used to ask for its backlog and to announce slots that will be free. */
  feeder(queue: string): Pick<Feeder, "hasBacklog" | "isLooking" | "endBegins" | "endIsOver"> | undefined;
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
